// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"testing"

	"github.com/attune-hpc/attune/internal/pointtext"
)

// TestKernelOnly: for these points the kernel's probes are prepared before a process comes; for
// all others nothing is.
func TestKernelOnly(t *testing.T) {
	for text, want := range map[string]bool{
		"libc.so.6:malloc by stack":              true,
		"libc.so.6:open by arg0:str":             true,
		"app:f take arg0:gostr":                  true,
		"usdt:libstdc++.so.6:libstdcxx:throw":    true,
		"libc.so.6:malloc":                       false,
		"libc.so.6:write sum arg2 by arg0":       false,
		"libc.so.6:open take arg0:str every 100": false,
		"libc.so.6:write%time":                   false,
	} {
		point, err := pointtext.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := KernelOnly(point.Spec); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
