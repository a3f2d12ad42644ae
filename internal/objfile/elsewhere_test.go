// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestOtherVersion: calls of the same version are calls of the function, also where that
// is indirect and its address that of what was chosen.
func TestOtherVersion(t *testing.T) {
	versions := filepath.Join(t.TempDir(), "versions")
	files.Write(t, versions, "V1 { global: *; };\nV2 { } V1;\n", 0o600)
	library := targets.BuildText(t, "libtwo.so", `
int one(void) { return 1; }
static int chosen(void) { return 2; }
static int (*choose(void))(void) { return chosen; }
int two(void) __attribute__((ifunc("choose")));
__asm__(".symver one, f@V1");
__asm__(".symver two, f@@V2");
`, "-shared", "-fPIC", "-Wl,-soname,libtwo.so", "-Wl,--version-script="+versions)
	for version, other := range map[string]bool{"V1": true, "V2": false} {
		program := targets.BuildText(t, "linked", `#include <stdio.h>
int f(void);
__asm__(".symver f, f@`+version+`");
int main(void) { puts("ready"); fflush(stdout); return getchar() == 0 && f(); }
`, library, "-Wl,-rpath,"+filepath.Dir(library))
		images, err := objfile.Images(targets.StartCommand(t, exec.Command(program)).PID)
		if err != nil {
			t.Fatal(err)
		}
		f, err := objfile.ResolveIn(images, "libtwo.so", "f", objfile.Function)
		if !errors.Is(err, objfile.ErrIndirect) {
			t.Fatal(err)
		}
		chosen, err := objfile.ResolveIn(images, "libtwo.so", "chosen", objfile.Function)
		if err != nil {
			t.Fatal(err)
		}
		slots, err := images[0].GOTSlots("f")
		if err != nil || len(slots) != 1 || slots[0].Version != version {
			t.Fatalf("slots %+v, %v", slots, err)
		}
		for name, address := range map[string]uint64{"its resolver": f.Address, "what it chose": chosen.Address} {
			f.Address = address
			if got := f.OtherVersion(slots[0]); got != other {
				t.Errorf("slot of %s, address of %s: another version is %t, want %t", version, name, got, other)
			}
		}
	}
}
