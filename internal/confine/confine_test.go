// SPDX-License-Identifier: Apache-2.0

package confine

import "testing"

func TestHoldsID(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       bool
	}{
		{"everybody", "         0          0 4294967295\n", true},
		{"one user only", "         0       1000          1\n", false},
		{"a range of subordinate ids", "0 1000 1\n1 100000 65536\n", true},
		{"one that ends before", "0 1000 1\n1 100000 65533\n", false},
		{"nobody alone", "65534 1000 1\n", true},
		{"none", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := holdsID(tt.text, Nobody); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
