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

// tellWants tells controllers what is wanted of them, where that has changed. It ends
// each turn of the loop, which is a tick, or a message such as all that a tunlet wants
// after a call.
func (s *Session) tellWants() {
	for c := range s.due {
		if c.paidAt-s.now() > wantAhead {
			continue
		}
		delete(s.due, c)
		want := c.wantOf(s.pace)
		c.paidAt = max(c.paidAt, s.now()) + time.Duration(proto.Size(want))*time.Second/wantRate
		s.send(c, &attunev1.ManageResponse{Request: &attunev1.ManageResponse_Want{Want: want}})
	}
}

// wantOf merges what all askers want of a controller.
func (c *controller) wantOf(period time.Duration) *attunev1.Want {
	want := &attunev1.Want{PeriodNanos: int64(period)}
	for _, index := range slices.Sorted(maps.Keys(c.points)) {
		want.Points = append(want.Points, c.points[index])
	}
	for _, handle := range slices.Sorted(maps.Keys(c.tables)) {
		want.Tables = append(want.Tables, &attunev1.TableWant{Process: handle, Tables: c.tables[handle]})
	}
	return want
}

// wantPoint adds a point to what is wanted of a controller, in its own process
// handles. A point for certain processes goes only where one of them is.
func (s *Session) wantPoint(c *controller, p *point) {
	spec := p.spec
	if len(spec.GetProcesses()) > 0 {
		spec = proto.CloneOf(spec)
		spec.Processes = nil
		for _, id := range p.spec.GetProcesses() {
			if pr := s.processes[id]; pr != nil && pr.controller == c {
				spec.Processes = append(spec.Processes, pr.handle)
			}
		}
		if len(spec.GetProcesses()) == 0 {
			return
		}
	}
	c.points[p.index], s.due[c] = &attunev1.PointWant{Index: p.index, Point: spec}, true
}

// wantTables merges what all askers want of a process beside its signals, and what
// would wake a tunlet.
func (s *Session) wantTables(id uint64) {
	p := s.processes[id]
	if p == nil {
		return
	}
	var tables []uint32
	if !p.ended {
		tables = s.sleepers.watch.Details(id)
		for _, t := range s.tunlets {
			tables = append(tables, t.feed.Details(id)...)
		}
		for _, a := range s.askers {
			for _, w := range a.want.GetTables() {
				if w.GetProcess() == id {
					tables = append(tables, w.GetTables()...)
				}
			}
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
	s.due[p.controller] = true
}
