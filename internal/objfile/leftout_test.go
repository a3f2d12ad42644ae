// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestLeftOut: an object whose file was deleted since is told, where it cannot be opened, and
// code that was made at run time is not taken for one.
func TestLeftOut(t *testing.T) {
	library := targets.BuildText(t, "libgone.so", "int f(void) { return 1; }\n", "-shared", "-fPIC")
	target := targets.Start(t, targets.BuildText(t, "loads", `#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void) {
    char made[] = "/tmp/ffiXXXXXX"; /* as libffi does */
    int file = mkstemp(made);
    if (file < 0 || unlink(made) != 0 || ftruncate(file, 4096) != 0 ||
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0) == MAP_FAILED)
        return 1;
    if (!dlopen("`+library+`", RTLD_NOW)) return 1;
    puts("ready");
    fflush(stdout);
    return getchar() == 0;
}`))
	if err := os.Remove(library); err != nil {
		t.Fatal(err)
	}
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(images, func(i objfile.Image) bool { return i.Path == library }) {
		if gone := objfile.LeftOut(images); len(gone) > 0 {
			t.Errorf("left out though all can be opened: %q", gone)
		}
		t.Skip("whoever may open files by their mapping has nothing left out")
	}
	if gone := objfile.LeftOut(images); !slices.Equal(gone, []string{library}) {
		t.Errorf("left out: %q, want %q", gone, library)
	}
	if err := objfile.NoObject(images, "libgone.so"); !errors.Is(err, objfile.ErrReplaced) || !strings.Contains(err.Error(), library) {
		t.Errorf("%v", err)
	}
}
