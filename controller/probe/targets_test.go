// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// running is a process that runs a program, without DMLib.
type running struct {
	*process
	pid int
}

func (r running) PID() int                         { return r.pid }
func (r running) Hold() (*proc.Handle, error)      { return proc.Open(r.pid) }
func (r running) Images() ([]objfile.Image, error) { return objfile.Images(r.pid) }

// TestSlotsOfVersions: calls go on to the version that the program was linked to, or are
// left alone.
func TestSlotsOfVersions(t *testing.T) {
	versions := filepath.Join(t.TempDir(), "versions")
	files.Write(t, versions, "V1 { global: *; };\nV2 { } V1;\n", 0o600)
	library := targets.BuildText(t, "libtwo.so", `
int one(void) { return 1; }
int two(void) { return 2; }
__asm__(".symver one, f@V1");
__asm__(".symver two, f@@V2");
`, "-shared", "-fPIC", "-Wl,-soname,libtwo.so", "-Wl,--version-script="+versions)
	program := targets.BuildText(t, "linked", `#include <stdio.h>
int f(void);
__asm__(".symver f, f@V1");
int main(void) { puts("ready"); fflush(stdout); return getchar() == 0 && f(); }
`, library, "-Wl,-z,lazy", "-Wl,-rpath,"+filepath.Dir(library))
	target := targets.StartCommand(t, exec.Command(program))
	h := &host{common: new(common), process: running{pid: target.PID}}
	h.begin()
	for symbol, want := range map[string]string{"f": "", "f@V2": "", "f@V1": "f@V1"} {
		got, reason, err := h.wantedSlots(&attunev1.FunctionTarget{Object: "libtwo.so", Symbols: []string{symbol}})
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			if len(got) > 0 || symbol == "f" && !strings.Contains(reason, "f@V1") {
				t.Errorf("%s: %+v, %q", symbol, got, reason)
			}
			continue
		}
		images, err := objfile.Images(target.PID)
		if err != nil {
			t.Fatal(err)
		}
		one, err := objfile.ResolveIn(images, "libtwo.so", want, objfile.Function)
		if err != nil || len(got) != 1 || got[0].function != one.Address {
			t.Errorf("%s: %+v, want %#x, %v", symbol, got, one.Address, err)
		}
	}
}

// TestUnseenIsAdded: libraries that nobody can look into hide nothing else that is told.
func TestUnseenIsAdded(t *testing.T) {
	const gone = "calls of /lib/libgone.so are not counted: mapped file was replaced or deleted"
	for _, row := range []struct {
		reason, want string
		leftOut      []string
	}{
		{"", "", nil},
		{"none calls it", "none calls it", nil},
		{"", gone, []string{"/lib/libgone.so"}},
		{"none calls it", "none calls it; " + gone, []string{"/lib/libgone.so"}},
	} {
		h := &host{batch: &batch{leftOut: func() []string { return row.leftOut }}}
		if got := h.withUnseen(row.reason); got != row.want {
			t.Errorf("%q with %q is %q", row.reason, row.leftOut, got)
		}
	}
}
