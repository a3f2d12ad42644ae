// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// maxIndex is the greatest index of a point: it has 16 bits in a record.
	maxIndex = 65535
	// reuseAfter is how long the index of a point that was given back rests:
	// what was recorded under it may still be under way.
	reuseAfter = 10 * time.Second
)

// points are all points of a session.
type points struct {
	list      []*point // active
	retired   []*point // for the report
	byIndex   map[uint32]*point
	byKey     map[string]*point
	last      uint32    // the greatest index so far
	free      []freed   // indexes below it, the earliest first
	asked     uint64    // points so far
	omitted   int       // retired ones that were forgotten
	ratesFrom time.Time // when the rates were taken last
}

// freed is the index of a point that was given back.
type freed struct {
	index uint32
	at    time.Duration
}

// index returns an index for another point; 0 if none is left. Tunlets ask for
// points process by process, so a long job needs more than there are.
func (ps *points) index(now time.Duration) uint32 {
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

func newPoints() points {
	return points{byIndex: map[uint32]*point{}, byKey: map[string]*point{}}
}

// tick takes the rates once a second.
func (ps *points) tick(now time.Time) {
	if ps.ratesFrom.IsZero() {
		ps.ratesFrom = now
		return
	}
	period := now.Sub(ps.ratesFrom)
	if period < time.Second {
		return
	}
	for _, p := range ps.list {
		p.rate = float64(p.hits-p.hitsThen) / period.Seconds()
		p.hitsThen = p.hits
	}
	ps.ratesFrom = now
}

// retire takes a point that nobody wants out of use.
func (ps *points) retire(p *point, now time.Duration) {
	if len(ps.retired) < maxPoints {
		ps.retired = append(ps.retired, p)
	} else {
		ps.omitted++
	}
	ps.free = append(ps.free, freed{p.index, now})
	delete(ps.byIndex, p.index)
	delete(ps.byKey, p.key)
}

// processEnded folds the statuses of a process into numbers. Where another image
// took its place, what it refused is not told: most often, that it was replaced.
func (ps *points) processEnded(id uint64, replaced bool) {
	for _, p := range ps.list {
		delete(p.hitsIn, id)
		if st := p.status[id]; st != nil {
			if !replaced || st.GetState() != attunev1.PointState_POINT_STATE_REFUSED {
				p.past[keyOfStatus(st)]++
			}
			delete(p.status, id)
		}
	}
}
