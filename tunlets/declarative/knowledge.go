// SPDX-License-Identifier: Apache-2.0

package declarative

import "github.com/attune-hpc/attune/tunlets/sdk"

// count is what one measure point counted over some time.
type count struct{ seconds, hits, sum float64 }

// counts are those of a process' points, by their names in the file.
type counts map[string]count

func (c counts) add(point string, a sdk.Aggregate, seconds float64) {
	old := c[point]
	c[point] = count{max(old.seconds, seconds), old.hits + float64(a.Count), old.sum + a.Total()}
}

// join adds what was counted in a further interval.
func (c counts) join(further counts) {
	for point, n := range further {
		old := c[point]
		c[point] = count{old.seconds + n.seconds, old.hits + n.hits, old.sum + n.sum}
	}
}

// knowledge is what expressions are evaluated with: a process over some time.
type knowledge struct {
	watch  *watch
	span   sdk.Span
	counts counts
	item   *item // of a list of details, that an expression is about; nil: none
}

func (w *watch) knows(s sdk.Span, c counts) knowledge { return knowledge{watch: w, span: s, counts: c} }
