// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxIndex is the greatest index of a point: it has 16 bits in a record.
	maxIndex = 65535
	// maxPointBytes bounds what all points weigh, so that a want that has all of them
	// is a message that a channel carries.
	maxPointBytes = attunev1.MaxMessage / 2
	// reuseAfter is how long the index of a point that was given back rests:
	// what was recorded under it may still be under way.
	reuseAfter = 10 * time.Second
)

// pointSet has all points of a session, and gives them their indexes. It belongs to
// the loop.
type pointSet struct {
	byIndex map[uint32]*point
	byKey   map[string]*point
	last    uint32  // the greatest index so far
	free    []freed // indexes below it, the earliest first
	bytes   int     // what the points weigh
}

// freed is the index of a point that was given back.
type freed struct {
	index uint32
	at    time.Duration
}

// index returns an index for another point; 0 if none is left. Tunlets ask for
// points process by process, so a long job needs more than there are.
func (ps *pointSet) index(now time.Duration) uint32 {
	switch {
	case len(ps.free) > 0 && now-ps.free[0].at >= reuseAfter:
		index := ps.free[0].index
		ps.free = ps.free[1:]
		return index
	case ps.last < maxIndex:
		ps.last++
		return ps.last
	}
	return 0
}

func newPointSet() pointSet {
	return pointSet{byIndex: map[uint32]*point{}, byKey: map[string]*point{}}
}

// add takes a point in, under an index of index.
func (ps *pointSet) add(p *point) {
	ps.bytes += weightOf(p.spec)
	ps.byIndex[p.index], ps.byKey[p.key] = p, p
}

// retire takes a point that nobody wants out of use.
func (ps *pointSet) retire(p *point, now time.Duration) {
	ps.bytes -= weightOf(p.spec)
	ps.free = append(ps.free, freed{p.index, now})
	delete(ps.byIndex, p.index)
	delete(ps.byKey, p.key)
}

// processEnded forgets the statuses of a process.
func (ps *pointSet) processEnded(id uint64) {
	for _, p := range ps.byIndex {
		delete(p.status, id)
	}
}
