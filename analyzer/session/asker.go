// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"iter"
	"slices"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// asker is somebody who wants to see something: a tunlet, people at another command,
// the command line, who records.
type asker struct {
	name   string
	tunlet *tunlet // whose it is; nil: nobody's, who gets frames instead of calls
	points map[wish]*point

	// What follows is only for those without a tunlet.
	sink    Sink           // nil: they ask for others
	want    *attunev1.Want // the session's own copy; grows with what it follows
	numbers map[wish]uint32
	follows map[wish]bool
	last    uint32 // number
}

// wish is one measure point as an asker calls it, in one process; 0: in those that
// the point says.
type wish struct {
	id      string
	process uint64
}

// Ask says all that somebody wants from now on, in place of what they wanted before,
// and gives the sink all frames from now on; nil: somebody else looks at them. The
// want is made in the loop, where it may look at what sinks have taken; an error of
// it is returned, and then nothing changes. A want of nil ends it.
func (s *Session) Ask(ctx context.Context, name string, sink Sink, want func() (*attunev1.Want, error)) error {
	answer := make(chan error, 1)
	asked := s.post(func() {
		w, err := want()
		if err == nil {
			s.ask(name, sink, w)
		}
		answer <- err
	})
	if !asked {
		return ErrEnded
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.done:
		return ErrEnded
	}
}

// wantsAny says whether an asker wants anything at present.
func (a *asker) wantsAny() bool {
	return len(a.want.GetPoints())+len(a.want.GetTables()) > 0 || a.want.GetPeriodNanos() > 0
}

// Leave takes back all that somebody wanted.
func (s *Session) Leave(name string) {
	s.post(func() { s.ask(name, nil, nil) })
}

// ask takes over a want.
func (s *Session) ask(name string, sink Sink, want *attunev1.Want) {
	i := slices.IndexFunc(s.askers, func(a *asker) bool { return a.name == name })
	if i < 0 {
		i = len(s.askers)
		s.askers = append(s.askers, &asker{
			name: name, points: map[wish]*point{}, numbers: map[wish]uint32{}, follows: map[wish]bool{},
		})
		s.wants.parties[s.askers[i]] = true
	}
	a := s.askers[i]
	before := a.want.GetTables()
	a.sink, a.want = sink, proto.CloneOf(want)
	for _, w := range slices.Concat(before, want.GetTables()) {
		s.wants.mergeTables(w.GetProcess())
	}
	s.serve(a)
	if want == nil {
		s.askers = slices.Delete(s.askers, i, i+1)
		s.wants.leave(a)
		return
	}
	s.hurry()
}

// tables implements party.
func (a *asker) tables(process uint64) (tables []uint32) {
	for _, w := range a.want.GetTables() {
		if w.GetProcess() == process {
			tables = append(tables, w.GetTables()...)
		}
	}
	return tables
}

// serve gives an asker the points that it wants, and takes others away.
func (s *Session) serve(a *asker) {
	clear(a.follows)
	wanted := map[wish]*attunev1.MeasurePoint{}
	var order []wish
	for _, one := range a.want.GetPoints() {
		for w, spec := range s.wishes(one) {
			if wanted[w] == nil {
				order = append(order, w)
			}
			wanted[w], a.follows[w] = spec, a.follows[w] || one.GetFollow()
		}
	}
	for _, w := range order { // before what they take the place of goes
		if a.numbers[w] == 0 {
			a.last++
			a.numbers[w] = a.last
		}
		s.requestPoint(a, w, wanted[w])
	}
	for w := range a.points {
		if wanted[w] == nil {
			s.releasePoint(a, w)
			delete(a.numbers, w)
		}
	}
}

// wishes yields what a want for a point means: itself, or one in each of its
// processes that live, or live on with another image.
func (s *Session) wishes(one *attunev1.PointWant) iter.Seq2[wish, *attunev1.MeasurePoint] {
	return func(yield func(wish, *attunev1.MeasurePoint) bool) {
		id := one.GetPoint().GetId()
		if len(one.GetPoint().GetProcesses()) == 0 {
			yield(wish{id: id}, one.GetPoint())
			return
		}
		for _, process := range one.GetPoint().GetProcesses() {
			if p := s.processes.byID[process]; p == nil || p.ended && !p.replaced {
				continue
			}
			spec := proto.CloneOf(one.GetPoint())
			spec.Processes = []uint64{process}
			if !yield(wish{id, process}, spec) {
				return
			}
		}
	}
}

// extendWants has askers get in a process what they want in the one whose place it
// takes, or in its parent.
func (s *Session) extendWants(p *process) {
	for _, a := range s.askers {
		grown := false
		for _, one := range a.want.GetPoints() {
			grown = s.extendWant(a, one, p) || grown
		}
		if grown {
			s.serve(a)
		}
	}
}

// extendWant says whether a point is wanted in one process more now.
func (s *Session) extendWant(a *asker, one *attunev1.PointWant, p *process) bool {
	before := s.among(one, p.controller, p.pid)
	switch {
	case before == p:
		return false
	case before != nil:
		id := one.GetPoint().GetId()
		a.numbers[wish{id, p.id}] = a.numbers[wish{id, before.id}]
		s.drop(one, before)
	case !one.GetFollow() || s.among(one, p.controller, int(p.info.GetParentPid())) == nil:
		return false
	}
	one.Point.Processes = append(one.Point.Processes, p.id)
	return true
}

// among returns the process of a controller with a pid that a point is wanted in;
// nil: in none.
func (s *Session) among(one *attunev1.PointWant, c *controller, pid int) *process {
	for _, id := range one.GetPoint().GetProcesses() {
		if p := s.processes.byID[id]; p != nil && p.controller == c && p.pid == pid {
			return p
		}
	}
	return nil
}

// drop takes a process out of those in which a point is wanted.
func (s *Session) drop(one *attunev1.PointWant, p *process) {
	one.Point.Processes = slices.DeleteFunc(one.Point.Processes, func(id uint64) bool { return id == p.id })
}

// shrinkWants forgets what was wanted in a process that has ended.
func (s *Session) shrinkWants(p *process) {
	for _, a := range s.askers {
		var rest []*attunev1.PointWant
		shrunk := false
		for _, one := range a.want.GetPoints() {
			if in := s.among(one, p.controller, p.pid); in != nil {
				s.drop(one, in)
				shrunk = true
				if len(one.GetPoint().GetProcesses()) == 0 {
					continue // which would mean all processes
				}
			}
			rest = append(rest, one)
		}
		if shrunk {
			a.want.Points = rest
			s.serve(a)
		}
	}
}
