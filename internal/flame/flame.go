// SPDX-License-Identifier: Apache-2.0

// Package flame draws stacks of calls as flame graphs, and writes them as the folded
// lines that other tools read. Its functions are safe for concurrent use.
package flame

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/hits"
)

// Stack is some calls, outermost first, with what was seen in them: hits, or a sum.
type Stack struct {
	Frames []string
	Weight uint64
}

// Fold writes a line for each stack, as flamegraph.pl, speedscope and others read it:
// the frames with semicolons between them, a blank, and the weight.
func Fold(w io.Writer, stacks []Stack) error {
	out := bufio.NewWriter(w)
	for _, s := range stacks {
		fmt.Fprintf(out, "%s %d\n", hits.Folded(s.Frames), s.Weight)
	}
	return out.Flush()
}

// call is a function in the place where it is called.
type call struct {
	name   string
	weight uint64 // of all stacks that lead through it
	own    uint64 // of those that end in it
	calls  map[string]*call
}

// tree puts stacks together whose outer frames are the same.
func tree(stacks []Stack) *call {
	root := &call{calls: make(map[string]*call)}
	for _, s := range stacks {
		root.weight += s.Weight
		at := root
		for _, name := range s.Frames {
			next := at.calls[name]
			if next == nil {
				next = &call{name: name, calls: make(map[string]*call)}
				at.calls[name] = next
			}
			next.weight += s.Weight
			at = next
		}
		at.own += s.Weight
	}
	return root
}

// sorted lists what a function calls, the greatest first.
func (c *call) sorted() []*call {
	return slices.SortedFunc(maps.Values(c.calls), func(a, b *call) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.name, b.name))
	})
}

// share of all, 0 to 1.
func share(part, all uint64) float64 {
	if all == 0 {
		return 0
	}
	return float64(part) / float64(all)
}

// object is the program or library of a frame, as it is written: OBJECT:FUNCTION.
func object(frame string) string {
	name, _, found := strings.Cut(frame, ":")
	if !found {
		return ""
	}
	return name
}

// function is a frame without its object.
func function(frame string) string {
	if name := object(frame); name != "" {
		return frame[len(name)+1:]
	}
	return frame
}
