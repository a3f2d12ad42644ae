// SPDX-License-Identifier: Apache-2.0

package targets

import "testing"

func TestFewer(t *testing.T) {
	for _, row := range []struct {
		share   string
		n, want int
		all     bool
	}{
		{"1", 40, 40, true}, {"0.25", 40, 10, false}, {"0.05", 40, 2, false}, {"0.05", 3, 1, false},
	} {
		t.Setenv("ATTUNE_ROUNDS", row.share)
		if got := Fewer(row.n); got != row.want || AllRounds() != row.all {
			t.Errorf("%s of %d: %d, all %v", row.share, row.n, got, AllRounds())
		}
	}
	for _, wrong := range []string{"", "0", "2", "quarter"} {
		t.Setenv("ATTUNE_ROUNDS", wrong)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is taken", wrong)
				}
			}()
			Fewer(1)
		}()
	}
}
