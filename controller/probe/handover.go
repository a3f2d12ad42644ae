// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"maps"
	"slices"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/sites"
)

// whyHandedOver is the reason of points that were handed over.
const whyHandedOver = "a uprobe of another point is at the function, where a patch cannot be as well"

// whyMissed is what a kernel without uprobe_multi adds to it: its breakpoint
// comes before the program behind it.
const whyMissed = "; calls of the moment in which it came were not counted"

// handOver has the kernel serve the points that patches with these numbers
// serve, in all processes, and then calls then, with [sites.ErrActed] or
// [sites.ErrJump] where it may not. It returns at once. The functions stay the
// kernel's until then gives back what it is given.
//
// No call is missed, but by kernels without uprobe_multi, and none counted
// twice. The kernel begins to watch before its breakpoint comes, which is one
// byte in the place of the jump's first: each call takes one of them. What was
// on its way by the jump finds its point still set, for as long as the point
// stays. What a patch sees at exits alone it goes on seeing, since the
// breakpoint is at the entry.
func (s *tenants) handOver(numbers []int, then func(*sites.Kept, error)) {
	s.work.begin(func() {
		tenants, affected, kept, err := s.lockAll(numbers)
		for _, index := range slices.Sorted(maps.Keys(affected)) {
			handOverPoint(index, affected[index])
		}
		for _, t := range tenants {
			t.mu.Unlock()
		}
		then(kept, err)
	})
}

// lockAll locks all processes, gives functions with these numbers to the kernel,
// and lists the processes with points that are served by their patches, by
// point. With an error nothing is affected. The caller unlocks the tenants.
//
// Nobody else locks two processes. This one waits for no process while it has
// another one locked, as others do who come to a busy one here: placing may take
// seconds where a process does not come to a safe point.
func (s *tenants) lockAll(numbers []int) (tenants []*tenant, affected map[uint16][]*tenant, kept *sites.Kept, err error) {
	var waited *tenant // locked
	for {
		s.mu.Lock()
		var busy *tenant
		if tenants, busy = tryLockAll(s.of, waited); busy == nil {
			break
		}
		s.mu.Unlock()
		busy.mu.Lock()
		waited = busy
	}
	// Who comes now finds the functions given away before it patches any.
	defer s.mu.Unlock()
	affected, numbers = affectedBy(tenants, numbers)
	if kept, err = s.options.Functions.Take(numbers); err != nil {
		return tenants, nil, nil, err
	}
	return tenants, affected, kept, nil
}

// tryLockAll locks all but the one that is locked already; or unlocks all, that
// one too, and returns one which is busy.
func tryLockAll(all map[uint64]*tenant, locked *tenant) (tenants []*tenant, busy *tenant) {
	if locked != nil { // it may have ended, and be none of all
		tenants = append(tenants, locked)
	}
	for _, t := range all {
		if t == locked {
			continue
		}
		if !t.mu.TryLock() {
			for _, t := range tenants {
				t.mu.Unlock()
			}
			return nil, t
		}
		tenants = append(tenants, t)
	}
	return tenants, nil
}

// affectedBy lists the processes in which a point is served by patches with
// these numbers, by point, and adds the numbers of what else such a point has
// patched: it goes to the kernel whole. The caller has the tenants locked.
func affectedBy(tenants []*tenant, numbers []int) (affected map[uint16][]*tenant, all []int) {
	all = slices.Clone(numbers)
	for more := true; more; {
		before := len(all)
		affected = make(map[uint16][]*tenant)
		for _, t := range tenants {
			for index, p := range t.placed {
				if !t.gone && p.yields(all) {
					affected[index] = append(affected[index], t)
					all = p.addNumbers(all)
				}
			}
		}
		more = len(all) > before
	}
	return affected, all
}

// handOverPoint has the kernel serve one point in some processes. The first
// attachment puts the breakpoint into all of them, so all are watched by then, but for those
// that would not survive it, where yield refuses the point. The caller has them locked.
func handOverPoint(index uint16, tenants []*tenant) {
	var watches []uprobe.Watch
	for _, t := range tenants {
		spec, err := t.named(t.placed[index].spec)
		if err != nil {
			continue // yield says so
		}
		if captures, err := t.capturesOf(spec); err == nil && t.uprobes.survives(spec) {
			watches = append(watches, uprobe.Watch{
				PID: t.process.PID(), StartTicks: t.process.Identity().StartTicks, Point: index, Globals: captures.globals,
			})
		}
	}
	for _, t := range tenants {
		t.yield(index, watches)
	}
}

// yield has the kernel serve a point that patches serve. The caller holds t.mu.
func (t *tenant) yield(index uint16, watches []uprobe.Watch) {
	before := t.placed[index]
	now, err := t.named(before.spec)
	var p *placement
	if err == nil {
		p, err = t.uprobes.place(index, now, byKernel{why: whyHandedOver, yielding: true, watches: watches})
	}
	if err != nil { // nothing would be counted any more
		t.takeOut(t.work.ctx, index)
		t.uprobes.stopWatching(index)
		t.refuse(index, before.spec, err)
		return
	}
	if _, whyNot := p.attachments[0].Mechanism(); whyNot != "" {
		p.reason += whyMissed
	}
	p.late = before.late
	p.locals = before.locals // for what is on its way
	t.patches.yield(p.locals)
	t.tell(index, before.spec, p, nil)
}
