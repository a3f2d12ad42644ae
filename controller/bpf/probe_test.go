// SPDX-License-Identifier: Apache-2.0

package bpf

import "testing"

func TestMultiInOneProcess(t *testing.T) {
	for _, test := range []struct {
		major, minor uint32
		want         bool
	}{{5, 15, false}, {6, 6, false}, {6, 9, false}, {6, 10, true}, {6, 18, true}, {7, 0, true}} {
		for _, patch := range []uint32{0, 255} {
			if got := MultiInOneProcess(test.major<<16 | test.minor<<8 | patch); got != test.want {
				t.Errorf("Linux %d.%d.%d: %t", test.major, test.minor, patch, got)
			}
		}
	}
}
