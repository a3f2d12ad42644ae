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
		flags  []string
		gone   bool
		throws bool
	}{
		"with libraries":                {nil, false, true},
		"static":                        {[]string{"-static"}, false, true},
		"static, deleted":               {[]string{"-static"}, true, true},
		"its libraries static, deleted": {[]string{"-static-libstdc++", "-static-libgcc"}, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program := targets.BuildWith(t, "g++", "thrown", append(test.flags, "-O2", thrown)...)
			checkThrows(t, program, test.gone, test.throws)
		})
	}
	t.Run("a plug-in with its libraries in itself", func(t *testing.T) {
		source := filepath.Join(t.TempDir(), "plugin.cc")
		files.Write(t, source, "extern \"C\" void f(int n) { try { if (n) throw n; } catch (long) {} }\n", 0o600)
		plugin := targets.BuildWith(t, "g++", "plugin.so", "-shared", "-fPIC", "-static-libstdc++", "-static-libgcc", source)
		checkThrows(t, targets.BuildText(t, "loads", `#include <dlfcn.h>
#include <stdio.h>
int main(void) { if (!dlopen("`+plugin+`", RTLD_NOW)) return 1; puts("ready"); fflush(stdout); return getchar() == 0; }`), false, true)
	})
	t.Run("C, static", func(t *testing.T) {
		checkThrows(t, targets.Build(t, "../../controller/testdata/calls.c", "-static"), false, false)
	})
	t.Run("C, deleted", func(t *testing.T) {
		checkThrows(t, targets.BuildText(t, "calm", `#include <stdio.h>
int main(void) { puts("ready"); fflush(stdout); return getchar() == 0; }`), true, false)
	})
}

func checkThrows(t *testing.T, program string, gone, throws bool) {
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
	if err := objfile.Throws(images, objfile.Image.GOTSlots); errors.Is(err, objfile.ErrThrows) != throws {
		t.Errorf("got %v; it throws: %t", err, throws)
	}
}
