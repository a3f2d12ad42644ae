// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"iter"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// askers are all who want to see something, but for the tunlets. What they want grows
// and shrinks with the processes. It belongs to the loop.
type askers struct {
	inbox     *inbox
	teller    *teller
	processes *processes
	points    *points
	wants     *wants
	hurry     func()
	list      []*asker
}

// Ask says all that somebody wants from now on, in place of what they wanted before,
// and gives the sink all frames from now on; nil: somebody else looks at them. The
// want is made in the loop, where it may look at what sinks have taken; an error of
// it is returned, and then nothing changes. A want of nil ends it.
func (as *askers) Ask(ctx context.Context, name string, sink Sink, want func() (*attunev1.Want, error)) error {
	var refused error
	err := as.inbox.do(ctx, func() {
		w, err := want()
		if err == nil {
			as.ask(name, sink, w)
		}
		refused = err
	})
	if err != nil {
		return err
	}
	return refused
}

// Leave takes back all that somebody wanted.
func (as *askers) Leave(name string) {
	as.inbox.post(func() { as.ask(name, nil, nil) })
}

// ask takes over a want.
func (as *askers) ask(name string, sink Sink, want *attunev1.Want) {
	i := slices.IndexFunc(as.list, func(a *asker) bool { return a.name == name })
	if i < 0 {
		i = len(as.list)
		a := &asker{teller: as.teller, numbers: map[wish]uint32{}, follows: map[wish]bool{}}
		a.holder = holder{name: name, points: map[wish]*point{}, hears: a}
		as.list = append(as.list, a)
		as.wants.join(a)
	}
	a := as.list[i]
	before := a.want.GetTables()
	a.sink, a.want = sink, proto.CloneOf(want)
	for _, w := range slices.Concat(before, want.GetTables()) {
		as.wants.mergeTables(w.GetProcess())
	}
	as.serve(a)
	if want == nil {
		as.list = slices.Delete(as.list, i, i+1)
		as.wants.leave(a)
		return
	}
	as.hurry()
}

// serve gives an asker the points that it wants, and takes others away. What was refused
// and is not wanted any more is over too.
func (as *askers) serve(a *asker) {
	clear(a.follows)
	wanted := map[wish]*attunev1.MeasurePoint{}
	var order []wish
	for _, one := range a.want.GetPoints() {
		for w, spec := range as.wishes(one) {
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
		as.points.request(&a.holder, w, wanted[w])
	}
	for w := range a.numbers {
		switch {
		case wanted[w] != nil:
			continue
		case a.points[w] != nil:
			as.points.release(&a.holder, w)
		default:
			a.over(w, 0)
		}
		delete(a.numbers, w)
	}
}

// wishes yields what a want for a point means: itself, or one in each of its
// processes that live, or live on with another image.
func (as *askers) wishes(one *attunev1.PointWant) iter.Seq2[wish, *attunev1.MeasurePoint] {
	return func(yield func(wish, *attunev1.MeasurePoint) bool) {
		id := one.GetPoint().GetId()
		if len(one.GetPoint().GetProcesses()) == 0 {
			yield(wish{id: id}, one.GetPoint())
			return
		}
		for _, process := range one.GetPoint().GetProcesses() {
			if p := as.processes.byID[process]; p == nil || p.ended && !p.replaced {
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

// extend has askers get in a process what they want in the one whose place it
// takes, or in its parent.
func (as *askers) extend(p *process) {
	for _, a := range as.list {
		grown := false
		for _, one := range a.want.GetPoints() {
			grown = as.extendWant(a, one, p) || grown
		}
		if grown {
			as.serve(a)
		}
	}
}

// extendWant says whether a point is wanted in one process more now.
func (as *askers) extendWant(a *asker, one *attunev1.PointWant, p *process) bool {
	before := as.among(one, p.controller, p.pid)
	switch {
	case before == p:
		return false
	case before != nil:
		id := one.GetPoint().GetId()
		a.numbers[wish{id, p.id}] = a.numbers[wish{id, before.id}]
		removeProcess(one, before)
	case !one.GetFollow() || as.among(one, p.controller, int(p.info.GetParentPid())) == nil:
		return false
	}
	one.Point.Processes = append(one.Point.Processes, p.id)
	return true
}

// among returns the process of a controller with a pid that a point is wanted in;
// nil: in none.
func (as *askers) among(one *attunev1.PointWant, c *controller, pid int) *process {
	for _, id := range one.GetPoint().GetProcesses() {
		if p := as.processes.byID[id]; p != nil && p.controller == c && p.pid == pid {
			return p
		}
	}
	return nil
}

// removeProcess takes a process out of those in which a point is wanted.
func removeProcess(one *attunev1.PointWant, p *process) {
	one.Point.Processes = slices.DeleteFunc(one.Point.Processes, func(id uint64) bool { return id == p.id })
}

// shrink forgets what was wanted in a process that has ended.
func (as *askers) shrink(p *process) {
	for _, a := range as.list {
		var rest []*attunev1.PointWant
		shrunk := false
		for _, one := range a.want.GetPoints() {
			if in := as.among(one, p.controller, p.pid); in != nil {
				removeProcess(one, in)
				shrunk = true
				if len(one.GetPoint().GetProcesses()) == 0 {
					continue // which would mean all processes
				}
			}
			rest = append(rest, one)
		}
		if shrunk {
			a.want.Points = rest
			as.serve(a)
		}
	}
}

// watchers yields the sinks of those who watch.
func (as *askers) watchers(yield func(Sink) bool) {
	for _, a := range as.list {
		if a.sink != nil && !yield(a.sink) {
			return
		}
	}
}

// anythingAsked says whether anything is wanted at present.
func (as *askers) anythingAsked() bool { return slices.ContainsFunc(as.list, (*asker).wantsAny) }

// periodAsked is the shortest that is wanted between samples; 0: none is.
func (as *askers) periodAsked() (period time.Duration) {
	for _, a := range as.list {
		if wanted := time.Duration(a.want.GetPeriodNanos()); wanted > 0 && (period == 0 || wanted < period) {
			period = wanted
		}
	}
	return period
}
