// SPDX-License-Identifier: Apache-2.0

package pointcomplete

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// packagePath is how the linker calls package main of a test.
const packagePath = "github.com/attune-hpc/attune/cmd/attune/internal/pointcomplete"

func TestCompleteProbes(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(own))
	base := filepath.Base(own)
	tests := map[string]struct{ typed, want string }{
		"object":           {base[:3], base + ":"},
		"form":             {"", "usdt:"},
		"library":          {"libc.so", "libc.so.6:"},
		"function":         {base + ":" + packagePath + ".functionsO", base + ":" + packagePath + ".functionsOf"},
		"library function": {"libc.so.6:mallo", "libc.so.6:malloc"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _ := Complete(nil, nil, test.typed)
			if !slices.Contains(got, test.want) {
				t.Errorf("%q is not among %d, first %v", test.want, len(got), got[:min(len(got), 5)])
			}
			for _, one := range got {
				if !strings.HasPrefix(one, test.typed) && one != "usdt:" {
					t.Errorf("%q does not begin with %q", one, test.typed)
				}
			}
		})
	}
	if got, _ := Complete(nil, nil, "libnothing.so:f"); len(got) > 0 {
		t.Errorf("functions of nothing: %v", got)
	}
}
