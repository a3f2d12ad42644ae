// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// rejoin is what has to outlast a connection to the Analyzer: its measure
// points, which stay in place for as long as a lease, and which connection it
// is. An Analyzer that comes back sends the points that it wants again; those
// that are as before are not touched.
type rejoin struct {
	mu     sync.Mutex // guards what follows; a leaf lock
	count  uint64     // of connections that were lost
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

// connections returns how many were lost so far.
func (r *rejoin) connections() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count
}

// loses notes that the connection was lost.
func (r *rejoin) loses(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	r.lost, r.stale = now, true
	for _, p := range r.points {
		p.stale = true
	}
}

// finds notes that there is a connection.
func (r *rejoin) finds() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lost = time.Time{}
}

// asks notes a point. known says that it is there already, states are what the
// Analyzer has to hear of it then; else other says that the index is that of
// another point, which is to go first.
func (r *rejoin) asks(index uint16, spec *attunev1.MeasurePoint) (states []*attunev1.PointStatus, known, other bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.points[index]
	if before != nil && before.stale && proto.Equal(before.spec, spec) {
		before.stale = false
		for _, handle := range slices.Sorted(maps.Keys(before.states)) {
			states = append(states, before.states[handle])
		}
		return states, true, false
	}
	if r.points == nil {
		r.points = make(map[uint16]*pointAsked)
	}
	r.points[index] = &pointAsked{spec: spec, states: make(map[uint64]*attunev1.PointStatus)}
	return nil, false, before != nil
}

// drops forgets a point.
func (r *rejoin) drops(index uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.points, index)
}

// tells keeps what became of a point.
func (r *rejoin) tells(status *attunev1.PointStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.points[uint16(status.GetPoint())]; p != nil {
		p.states[status.GetProcess()] = status
	}
}

// forgets drops what is known of points in a process that has ended.
func (r *rejoin) forgets(handle uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.points {
		delete(p.states, handle)
	}
}

// abandoned says whether there has been no connection for longer than patience.
func (r *rejoin) abandoned(now time.Time, patience time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.lost.IsZero() && now.Sub(r.lost) > patience
}

// outlived takes the points that nobody has asked for since the last connection
// was lost.
func (r *rejoin) outlived() (indexes []uint16) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stale {
		return nil
	}
	r.stale = false
	for index, p := range r.points {
		if p.stale {
			indexes = append(indexes, index)
		}
	}
	slices.Sort(indexes)
	return indexes
}

// lost goes on without an Analyzer: changes until their leases end, measure
// points as long as one, samples and details not at all.
func (c *Controller) lost() {
	c.rejoin.loses(time.Now())
	c.leases.orphan()
	c.outbox.Hush(c.members.List())
	c.sampling.Store(0)
	c.aggregates.setInterval(0)
	c.setDetails(nil)
}

// opened tells an Analyzer that was found what it has to know.
func (c *Controller) opened(send func(*attunev1.PublishRequest) error, open func()) {
	found := func() { // one that breaks before is none
		c.rejoin.finds()
		open()
	}
	c.outbox.Retell(c.members.List(), send, found)
}

// renewed takes the Analyzer's word for changes. Word for all of them comes
// after the points that it wants again.
func (c *Controller) renewed(renew *attunev1.RenewLease) {
	c.leases.renew(renew.GetChanges(), time.Now())
	if len(renew.GetChanges()) == 0 {
		c.dropOutlived()
	}
}

// dropOutlived removes points that nobody stands for any more.
func (c *Controller) dropOutlived() {
	for _, index := range c.rejoin.outlived() {
		c.removePoint(index)
	}
}
