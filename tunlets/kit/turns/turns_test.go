// SPDX-License-Identifier: Apache-2.0

package turns_test

import (
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/turns"
)

// TestGone: a row is there until as many rows have been read as there are without it, and for
// as long as it takes from one of its turns to the next.
func TestGone(t *testing.T) {
	type round struct {
		read  []string
		total int
	}
	all := func(total int, read ...string) round { return round{read, total} }
	for name, tt := range map[string]struct {
		rounds []round
		want   []string
	}{
		"closed":             {[]round{all(2, "a", "b"), all(2, "a", "b"), all(1, "a"), all(1, "a")}, []string{"a"}},
		"the last one":       {[]round{all(1, "a"), all(1, "a"), all(0), all(0)}, nil},
		"one for the other":  {[]round{all(1, "a"), all(1, "a"), all(1, "b"), all(1, "b")}, []string{"b"}},
		"not read yet":       {[]round{all(1, "a"), all(1, "a"), all(1), all(1)}, nil},
		"in turn":            {[]round{all(4, "a", "b"), all(4, "c", "d"), all(4, "a", "b"), all(4, "c", "d"), all(4, "a", "b")}, []string{"a", "b", "c", "d"}},
		"closed in turn":     {[]round{all(3, "a"), all(3, "b"), all(3, "c"), all(3, "a"), all(3, "b"), all(3, "c"), all(2, "b"), all(2, "c"), all(2, "b")}, []string{"b", "c"}},
		"others closed":      {[]round{all(4, "a", "b"), all(4, "c", "d"), all(4, "a", "b"), all(1)}, []string{"a", "b", "c", "d"}},
		"read seldom":        {[]round{all(2, "a", "b"), all(2, "b"), all(2, "b"), all(2, "a", "b"), all(2, "b"), all(2, "b"), all(2, "b")}, []string{"a", "b"}},
		"seldom, and closed": {[]round{all(2, "a", "b"), all(2, "b"), all(2, "a", "b"), all(1, "b"), all(1, "b"), all(1, "b"), all(1, "b")}, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			var table turns.Table
			rows := map[string]turns.Turn{}
			at := time.Unix(1000, 0)
			for _, r := range tt.rounds {
				at = at.Add(50 * time.Millisecond)
				table.Round(at, len(r.read), r.total)
				for _, row := range r.read {
					rows[row] = table.Of(rows[row])
				}
			}
			var got []string
			for row, turn := range rows {
				if !table.Gone(turn) {
					got = append(got, row)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("%v are there, want %v", got, tt.want)
			}
		})
	}
}
