// SPDX-License-Identifier: Apache-2.0

package probeview

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/flame"
	"github.com/attune-hpc/attune/internal/hits"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// graph is the flame graph of a point that has stacks for keys: of the sums of its value,
// or of hits if that has no name.
func graph(title, value string, spec *attunev1.MeasurePoint, sums map[hits.Key]*hits.Sum) *flame.Graph {
	g := &flame.Graph{Title: title, Show: func(n uint64) string { return fmt.Sprintf("%d hits", n) }}
	weight := func(s *hits.Sum) uint64 { return s.Count }
	if value != "" {
		weight = func(s *hits.Sum) uint64 { return s.Total }
		g.Show = func(n uint64) string { return fmt.Sprintf("%d of %s", n, value) }
		if spec.GetPlace() == attunev1.Place_PLACE_BOTH {
			g.Show = func(n uint64) string { return time.Duration(n).String() }
		}
	}
	var others hits.Sum
	for _, key := range slices.SortedFunc(maps.Keys(sums), hits.Key.Compare) {
		if !key.Has {
			others.Merge(sums[key])
			continue
		}
		if n := weight(sums[key]); n > 0 {
			g.Stacks = append(g.Stacks, flame.Stack{Frames: key.Calls(), Weight: n})
		}
	}
	g.Missing = missing(&others, g.Show(weight(&others)))
	return g
}

// missing says what is in no stack.
func missing(others *hits.Sum, shown string) string {
	var parts []string
	if others.Count > 0 {
		parts = append(parts, fmt.Sprintf("not drawn: %s in other stacks, for which there was no room; keys N makes room for more", shown))
	}
	if others.Unreadable > 0 {
		parts = append(parts, fmt.Sprintf("%d hits could not be read", others.Unreadable))
	}
	return strings.Join(parts, "; ")
}
