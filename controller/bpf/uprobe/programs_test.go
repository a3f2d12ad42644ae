// SPDX-License-Identifier: Apache-2.0

package uprobe

import "testing"

// TestCallPlaces: the default has room for what CPUs keep to themselves, with a bound, and a
// size that is asked for is taken as it is.
func TestCallPlaces(t *testing.T) {
	for _, test := range []struct {
		name  string
		asked uint32
		cpus  int
		want  uint32
	}{
		{"two CPUs", 0, 2, 8192 + 2*128},
		{"as many as are provided for", 0, 256, 8192 + 256*128},
		{"more", 0, 512, 8192 + 256*128},
		{"for a mere test", 64, 512, 64},
	} {
		if got := callPlaces(test.asked, test.cpus); got != test.want {
			t.Errorf("%s: %d places, want %d", test.name, got, test.want)
		}
	}
}
