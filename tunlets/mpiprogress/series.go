// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"fmt"
	"hash/fnv"
	"io"
)

// series is the objective of several nodes together: the sum of their calls per
// second. The nodes of a series never change, so that what is compared is
// comparable: other nodes are another series. Each node reports in a rhythm of
// its own; there is a value as soon as all have reported since the last one.
type series struct {
	scope   string
	shares  map[*node]*share
	unheard int             // nodes without a report since the last value
	values  int             // so far
	judges  map[string]bool // proposals in force, or on their way, that it judges
}

// share is what one node has reported since the last value.
type share struct {
	calls   uint64
	seconds float64
}

// newSeries makes the series of the given nodes, which are in a fixed order.
func newSeries(nodes []*node) *series {
	s := &series{scope: scopeOf(nodes), shares: map[*node]*share{}, unheard: len(nodes), judges: map[string]bool{}}
	for _, n := range nodes {
		s.shares[n] = &share{}
	}
	return s
}

// scopeOf names nodes. Thousands of names would be no name: a digest tells one
// large set from another.
func scopeOf(nodes []*node) string {
	const named = 4
	digest := fnv.New64a()
	names := ""
	for i, n := range nodes {
		_, _ = io.WriteString(digest, n.host+"\x00") // never fails
		if i < named {
			names += "+" + n.host
		}
	}
	if len(nodes) <= named {
		return "nodes/" + names[1:]
	}
	return fmt.Sprintf("nodes/%s+%d more (%x)", names[1:], len(nodes)-named, digest.Sum64())
}

// covers says that all the given nodes are in the series.
func (s *series) covers(nodes []*node) bool {
	for _, n := range nodes {
		if s.shares[n] == nil {
			return false
		}
	}
	return true
}

// add takes one interval of a node, and returns the next value when it was the
// last node that had to report.
func (s *series) add(n *node, calls uint64, seconds float64) (value float64, ok bool) {
	own := s.shares[n]
	if own == nil {
		return 0, false
	}
	if own.seconds == 0 {
		s.unheard--
	}
	own.calls += calls
	own.seconds += seconds
	if s.unheard > 0 {
		return 0, false
	}
	for _, sh := range s.shares {
		value += float64(sh.calls) / sh.seconds
	}
	values := s.values + 1
	s.reset()
	s.values = values
	return value, true
}

// reset begins anew.
func (s *series) reset() {
	for _, sh := range s.shares {
		*sh = share{}
	}
	s.unheard, s.values = len(s.shares), 0
}

// broken says that a node has reported again while one is waited for whose
// calls are not counted any more: there will be no further value.
func (s *series) broken(n *node) bool {
	if own := s.shares[n]; own == nil || own.seconds == 0 {
		return false
	}
	for m := range s.shares {
		if m.intervals == 0 {
			return true
		}
	}
	return false
}
