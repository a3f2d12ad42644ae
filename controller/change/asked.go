// SPDX-License-Identifier: Apache-2.0

package change

import (
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// asked is what outlasts a connection to the Analyzer of its measure points, which
// stay in place for as long as a lease. An Analyzer that comes back sends the points that it wants again; those
// that are as before are not touched.
type asked struct {
	mu     sync.Mutex // guards what follows; a leaf lock
	lost   time.Time  // when the last one was; zero: there is one
	stale  bool       // there are points that the present connection has not asked for yet
	points map[uint16]*pointAsked
}

// pointAsked is a measure point that the Analyzer asked for.
type pointAsked struct {
	spec   *attunev1.MeasurePoint
	stale  bool                             // asked for by a connection that was lost
	states map[uint64]*attunev1.PointStatus // the latest, by process
}

// loses notes that the connection was lost.
func (a *asked) loses(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost, a.stale = now, true
	for _, p := range a.points {
		p.stale = true
	}
}

// finds notes that there is a connection.
func (a *asked) finds() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost = time.Time{}
}

// asks notes a point. known says that it is there already, states are what the
// Analyzer has to hear of it then; else other says that the index is that of
// another point, which is to go first.
func (a *asked) asks(index uint16, spec *attunev1.MeasurePoint) (states []*attunev1.PointStatus, known, other bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.points[index]
	if before != nil && before.stale && proto.Equal(before.spec, spec) {
		before.stale = false
		for _, handle := range slices.Sorted(maps.Keys(before.states)) {
			states = append(states, before.states[handle])
		}
		return states, true, false
	}
	if a.points == nil {
		a.points = make(map[uint16]*pointAsked)
	}
	a.points[index] = &pointAsked{spec: spec, states: make(map[uint64]*attunev1.PointStatus)}
	return nil, false, before != nil
}

// drops forgets a point.
func (a *asked) drops(index uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.points, index)
}

// tells keeps what became of a point.
func (a *asked) tells(status *attunev1.PointStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.points[uint16(status.GetPoint())]; p != nil {
		p.states[status.GetProcess()] = status
	}
}

// forgets drops what is known of points in a process that has ended.
func (a *asked) forgets(handle uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.points {
		delete(p.states, handle)
	}
}

// abandoned says whether there has been no connection for longer than patience.
func (a *asked) abandoned(now time.Time, patience time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.lost.IsZero() && now.Sub(a.lost) > patience
}

// outlived takes the points that nobody has asked for since the last connection
// was lost.
func (a *asked) outlived() (indexes []uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stale {
		return nil
	}
	a.stale = false
	for index, p := range a.points {
		if p.stale {
			indexes = append(indexes, index)
		}
	}
	slices.Sort(indexes)
	return indexes
}
