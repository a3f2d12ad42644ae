// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// wantRate bounds the bytes of wants that a controller is told in a second. A want
	// of 30 points takes 2 ms of that, one of 1,000 takes 70 ms. The controller takes
	// some 3 µs for a point, so at most 4 % of a core.
	wantRate = 1 << 20
	// wantAhead is how much of it may be told ahead: small wants come at once. What
	// changes beyond is told together, when there is something ahead again.
	wantAhead = 50 * time.Millisecond
)

// party is somebody who wants details of processes.
type party interface {
	// tables are those that it wants of a process that runs, beside its signals.
	tables(process uint64) []uint32
}

// wants merges what all parties want, and tells each controller its part, whole each
// time. It belongs to the loop.
type wants struct {
	clock       *clock
	controllers *controllers
	processes   *processes
	parties     map[party]bool
	due         map[*controller]bool // are to be told
	objective   string               // that all of them measure; empty: none does
}

// tell tells controllers what is wanted of them, where that has changed, and how often
// to sample. It ends each turn of the loop, which is a tick, or a message such as all
// that a tunlet wants after a call.
func (w *wants) tell(period time.Duration) {
	for c := range w.due {
		if c.paidAt-w.clock.now() > wantAhead {
			continue
		}
		delete(w.due, c)
		want := c.want(period)
		want.Objective = w.objective
		c.paidAt = max(c.paidAt, w.clock.now()) + time.Duration(proto.Size(want))*time.Second/wantRate
		c.send(&attunev1.ManageResponse{Request: &attunev1.ManageResponse_Want{Want: want}})
	}
}

// connected has a controller told at once, at a connection that has heard nothing yet.
func (w *wants) connected(c *controller) { c.paidAt, w.due[c] = 0, true }

// changedForAll has all controllers told.
func (w *wants) changedForAll() {
	for _, c := range w.controllers.byID {
		w.due[c] = true
	}
}

// want is all that is wanted of a controller.
func (c *controller) want(period time.Duration) *attunev1.Want {
	want := &attunev1.Want{PeriodNanos: int64(period)}
	for _, index := range slices.Sorted(maps.Keys(c.points)) {
		want.Points = append(want.Points, c.points[index])
	}
	for _, handle := range slices.Sorted(maps.Keys(c.tables)) {
		want.Tables = append(want.Tables, &attunev1.TableWant{Process: handle, Tables: c.tables[handle]})
	}
	return want
}

// addPoint adds a point to what is wanted of all controllers.
func (w *wants) addPoint(index uint32, spec *attunev1.MeasurePoint) {
	for _, c := range w.controllers.byID {
		w.addPointTo(c, index, spec)
	}
}

// addPointTo adds a point to what is wanted of a controller, in its own process
// handles. A point for certain processes goes only where one of them is.
func (w *wants) addPointTo(c *controller, index uint32, spec *attunev1.MeasurePoint) {
	if all := spec.GetProcesses(); len(all) > 0 {
		spec = proto.CloneOf(spec)
		spec.Processes = nil
		for _, id := range all {
			if p := w.processes.byID[id]; p != nil && p.controller == c {
				spec.Processes = append(spec.Processes, p.handle)
			}
		}
		if len(spec.GetProcesses()) == 0 {
			return
		}
	}
	c.points[index], w.due[c] = &attunev1.PointWant{Index: index, Point: spec}, true
}

// removePoint takes a point out of what is wanted.
func (w *wants) removePoint(index uint32) {
	for _, c := range w.controllers.byID {
		if c.points[index] != nil {
			delete(c.points, index)
			w.due[c] = true
		}
	}
}

// join has a party's wants merged with those of the others.
func (w *wants) join(p party) { w.parties[p] = true }

// leave forgets a party, and what nobody else wants.
func (w *wants) leave(p party) {
	delete(w.parties, p)
	for process := range w.processes.byID {
		w.mergeTables(process)
	}
}

// mergeTables merges what all parties want of a process beside its signals. It is for
// whenever that may have changed.
func (w *wants) mergeTables(id uint64) {
	p := w.processes.byID[id]
	if p == nil {
		return
	}
	var tables []uint32
	if !p.ended {
		for party := range w.parties {
			tables = append(tables, party.tables(id)...)
		}
	}
	slices.Sort(tables)
	tables = slices.Compact(tables)
	if slices.Equal(tables, p.controller.tables[p.handle]) {
		return
	}
	if p.controller.tables[p.handle] = tables; len(tables) == 0 {
		delete(p.controller.tables, p.handle)
	}
	w.due[p.controller] = true
}
