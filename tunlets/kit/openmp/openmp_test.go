// SPDX-License-Identifier: Apache-2.0

package openmp

import (
	"slices"
	"testing"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// TestOf: a run-time is known by the name that a distribution gives it, and by that which
// a package of Python has it carried along by.
func TestOf(t *testing.T) {
	const debian, wheel = "/usr/lib/x86_64-linux-gnu/libgomp.so.1.0.0", "/opt/v/torch.libs/libgomp-a34b3233.so.1.0.0"
	tests := map[string]struct {
		objects []string
		there   bool
		gnu     bool
	}{
		"of Debian":         {[]string{debian}, true, true},
		"of a package":      {[]string{wheel}, true, true},
		"LLVM's":            {[]string{"/usr/lib/libomp.so.5"}, true, false},
		"LLVM's, a package": {[]string{"/opt/v/x.libs/libomp-0123abcd.so"}, true, false},
		"Intel's":           {[]string{"/opt/v/lib/libiomp5.so"}, true, false},
		"two of them":       {[]string{debian, wheel}, false, false},
		"its plugin only":   {[]string{"/usr/lib/libgomp-plugin-nvptx.so.1"}, false, false},
		"none":              {[]string{"/usr/lib/libc.so.6"}, false, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, there := Of(sdk.Process{Objects: test.objects})
			if there != test.there || found.GNU != test.gnu {
				t.Errorf("got %+v, %t", found, there)
			}
			if !there {
				return
			}
			wakes := Wakes(Any)
			if !slices.ContainsFunc(wakes, func(w sdk.Wake) bool { return w.Object == found.Object }) {
				t.Errorf("%s wakes nobody: %+v", found.Object, wakes)
			}
		})
	}
}
