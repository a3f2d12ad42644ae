// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"github.com/attune-hpc/attune/internal/flame"
)

// addFlames draws the points of the owner that have stacks for keys: their times or
// sums, or their hits.
func (p *page) addFlames() {
	for i := range p.Points {
		pt := &p.Points[i]
		if pt.Tunlet != OwnerName || len(pt.Keys) == 0 || pt.Keys[0].Stack == nil {
			continue
		}
		g := &flame.Graph{Title: pt.ID, Show: func(n uint64) string { return fmt.Sprintf("%d hits", n) }}
		summed := pt.Value != nil
		for _, row := range pt.Keys {
			_, unsigned := row.sum()
			summed = summed && unsigned
		}
		if summed {
			g.Show = func(n uint64) string { return valueText(Value{n}, pt.Value.Unit, false) + " of " + pt.Value.Name }
		}
		for _, row := range pt.Keys {
			weight := row.Hits
			if summed {
				weight, _ = row.sum()
			}
			g.Stacks = append(g.Stacks, flame.Stack{Frames: row.Stack, Weight: weight})
		}
		if pt.Rest != nil {
			g.Missing = fmt.Sprintf("Not drawn: %d hits in other stacks, for which there was no room; keys N makes room for more.", pt.Rest.Hits)
		}
		p.Flames = append(p.Flames, g)
	}
}

// sum of the values of a key; false where there is none that can be drawn.
func (r *KeyRow) sum() (uint64, bool) {
	if r.Value == nil {
		return 0, false
	}
	n, ok := r.Value.Sum.v.(uint64)
	return n, ok
}
