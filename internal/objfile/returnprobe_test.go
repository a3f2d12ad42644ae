// SPDX-License-Identifier: Apache-2.0

package objfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestThrows: a program that has all it throws with in itself throws as well when its
// file is gone, as after an upgrade.
func TestThrows(t *testing.T) {
	const thrown = "../../controller/testdata/thrown.cc"
	tests := map[string]struct {
		flags []string
		gone  bool
	}{
		"with libraries":                {nil, false},
		"static":                        {[]string{"-static"}, false},
		"static, deleted":               {[]string{"-static"}, true},
		"its libraries static, deleted": {[]string{"-static-libstdc++", "-static-libgcc"}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program := targets.BuildWith(t, "g++", "thrown", append(test.flags, "-O2", thrown)...)
			checkReturnProbes(t, program, test.gone, objfile.ErrThrows)
		})
	}
	t.Run("a plug-in with its libraries in itself", func(t *testing.T) {
		source := filepath.Join(t.TempDir(), "plugin.cc")
		files.Write(t, source, "extern \"C\" void f(int n) { try { if (n) throw n; } catch (long) {} }\n", 0o600)
		plugin := targets.BuildWith(t, "g++", "plugin.so", "-shared", "-fPIC", "-static-libstdc++", "-static-libgcc", source)
		checkReturnProbes(t, targets.BuildText(t, "loads", `#include <dlfcn.h>
#include <stdio.h>
int main(void) { if (!dlopen("`+plugin+`", RTLD_NOW)) return 1; puts("ready"); fflush(stdout); return getchar() == 0; }`), false, objfile.ErrThrows)
	})
	t.Run("C, static", func(t *testing.T) {
		checkReturnProbes(t, targets.Build(t, "../../controller/testdata/calls.c", "-static"), false, nil)
	})
	t.Run("C, deleted", func(t *testing.T) {
		checkReturnProbes(t, targets.BuildText(t, "calm", `#include <stdio.h>
int main(void) { puts("ready"); fflush(stdout); return getchar() == 0; }`), true, nil)
	})
}

// TestSwitches: a program that runs several stacks is known by what it switches them with. What
// OpenSSL has for itself, by the same header, is none.
func TestSwitches(t *testing.T) {
	const fibers = "../../controller/testdata/fibers.c"
	t.Run("by the C library", func(t *testing.T) {
		checkReturnProbes(t, targets.Build(t, fibers), false, objfile.ErrSwitches)
	})
	t.Run("static", func(t *testing.T) {
		checkReturnProbes(t, targets.Build(t, fibers, "-static"), true, objfile.ErrSwitches)
	})
	t.Run("by a function of its own", func(t *testing.T) {
		checkReturnProbes(t, targets.BuildText(t, "jumps", `#include <stdio.h>
void jump_fcontext(void) {}
int main(void) { puts("ready"); fflush(stdout); return getchar() == 0; }`), false, objfile.ErrSwitches)
	})
	t.Run("never", func(t *testing.T) {
		checkReturnProbes(t, targets.BuildText(t, "prepares", `#include <stdio.h>
#include <ucontext.h>
ucontext_t here;
void *volatile all[] = {(void *)getcontext, (void *)makecontext, (void *)setcontext};
int main(void) { getcontext(&here); puts("ready"); fflush(stdout); return getchar() == 0; }`), false, nil)
	})
}

func checkReturnProbes(t *testing.T, program string, gone bool, want error) {
	t.Helper()
	target := targets.Start(t, program)
	if gone {
		if err := os.Remove(program); err != nil {
			t.Fatal(err)
		}
	}
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	if err := objfile.ReturnProbes(images, objfile.Image.GOTSlots); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
