// SPDX-License-Identifier: Apache-2.0

package change

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/probe"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// WantedOptions of Wanted. All are needed.
type WantedOptions struct {
	// Members are where points are placed.
	Members *member.Set
	// Placer returns who places points, once it is there.
	Placer func() *probe.Placer
	// Hold adds a point that is to be in place before main of new processes. Free is
	// called when points are gone.
	Hold func(add func())
	Free func()
	// Need is told of each point that comes, for processes without DMLib.
	Need func(*attunev1.MeasurePoint)
	// Deliver is told that points have come or gone, and how many more of them
	// deliver records, fewer if negative.
	Deliver func(more int32)
	// Sample sets how often signals and aggregates are taken; 0: not at all.
	Sample func(period time.Duration)
	// Read replaces what is read beside the signals.
	Read func([]*attunev1.TableWant)
	// Measure replaces the owner's objective that is measured; empty: none is.
	Measure func(objective string)
	// Answer takes a message to the Analyzer.
	Answer func(*attunev1.ManageRequest)
}

// Wanted is what the Analyzer wants measured. A connection that is lost takes along
// what was sampled; its points stay in place for as long as a lease.
type Wanted struct {
	options WantedOptions

	doing   sync.Mutex // guards what follows; held while a want takes the place of another
	inForce *attunev1.Want
	lost    time.Time // since when no connection has wanted anything; zero: one has

	mu     sync.Mutex                                  // guards what follows; comes before that of Members
	states map[uint16]map[uint64]*attunev1.PointStatus // the latest of each point, by process
}

// NewWanted returns a Wanted with which nothing is measured.
func NewWanted(o WantedOptions) *Wanted {
	w := &Wanted{options: o, states: make(map[uint16]map[uint64]*attunev1.PointStatus)}
	o.Members.OnLeave(func(m *member.Member) { w.forget(m.Handle()) })
	return w
}

// Want has this measured from now on, and nothing else. The first time after a
// connection was lost the Analyzer is told how the points that stay are.
func (w *Wanted) Want(want *attunev1.Want) {
	w.doing.Lock()
	defer w.doing.Unlock()
	d := w.replace(want)
	for _, status := range d.refused {
		w.tell(status)
	}
	if w.lost.IsZero() {
		return
	}
	w.lost = time.Time{}
	for _, status := range w.statesOf(d.kept) {
		w.tell(status)
	}
}

// Lost notes that the connection was lost.
func (w *Wanted) Lost(now time.Time) {
	w.doing.Lock()
	defer w.doing.Unlock()
	if w.lost.IsZero() {
		w.lost = now
	}
	w.replace(&attunev1.Want{Points: w.inForce.GetPoints()})
}

// GiveUp has nothing measured any more if no connection has wanted anything for longer
// than patience, and says whether that is so.
func (w *Wanted) GiveUp(now time.Time, patience time.Duration) bool {
	w.doing.Lock()
	defer w.doing.Unlock()
	abandoned := !w.lost.IsZero() && now.Sub(w.lost) > patience
	if abandoned {
		w.replace(nil)
	}
	return abandoned
}

// Status keeps what became of a point, and tells it.
func (w *Wanted) Status(status *attunev1.PointStatus) {
	w.keep(status)
	w.tell(status)
}

// replace does what is to be done so that a want is in force. The caller holds doing.
func (w *Wanted) replace(want *attunev1.Want) difference {
	d := compare(w.inForce, want)
	w.inForce = d.next
	w.expect(d)
	more := int32(0)
	for _, index := range d.gone {
		more -= delivering(w.options.Placer().Remove(index))
	}
	for _, p := range d.come {
		w.place(uint16(p.GetIndex()), p.GetPoint())
		more += delivering(p.GetPoint())
	}
	if len(d.gone) > 0 {
		w.options.Free() // after Hold: no new process slips past the gate in between
	}
	if len(d.gone)+len(d.come) > 0 {
		w.options.Deliver(more)
	}
	if d.tables {
		w.options.Read(d.next.GetTables())
	}
	if d.owned {
		w.options.Measure(d.next.GetObjective())
	}
	if d.period {
		w.options.Sample(time.Duration(d.next.GetPeriodNanos()))
	}
	return d
}

func (w *Wanted) place(index uint16, spec *attunev1.MeasurePoint) {
	add := func() { w.options.Placer().Add(index, spec) }
	if len(spec.GetProcesses()) == 0 {
		w.options.Hold(add)
	} else {
		add()
	}
	w.options.Need(spec)
}

// delivering is 1 for a point that delivers records, else 0.
func delivering(spec *attunev1.MeasurePoint) int32 {
	switch spec.GetDelivery() {
	case attunev1.Delivery_DELIVERY_EVENT, attunev1.Delivery_DELIVERY_SAMPLED:
		return 1
	}
	return 0
}

// expect has the states of points kept that come, and of those no more that go.
func (w *Wanted) expect(d difference) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, index := range d.gone {
		delete(w.states, index)
	}
	for _, p := range d.come {
		w.states[uint16(p.GetIndex())] = make(map[uint64]*attunev1.PointStatus)
	}
}

// keep keeps what became of a point, unless the process has ended: it may have been
// forgotten already, and what was under way in it is told later.
func (w *Wanted) keep(status *attunev1.PointStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if handle := status.GetProcess(); handle != 0 && w.options.Members.Get(handle) == nil {
		return
	}
	if states := w.states[uint16(status.GetPoint())]; states != nil {
		states[status.GetProcess()] = status
	}
}

// statesOf lists what became of points.
func (w *Wanted) statesOf(indexes []uint16) (all []*attunev1.PointStatus) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, index := range indexes {
		states := w.states[index]
		for _, handle := range slices.Sorted(maps.Keys(states)) {
			all = append(all, states[handle])
		}
	}
	return all
}

// forget drops what is known of points in a process that has ended.
func (w *Wanted) forget(handle uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, states := range w.states {
		delete(states, handle)
	}
}

func (w *Wanted) tell(status *attunev1.PointStatus) {
	w.options.Answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Point{Point: status}})
}
