// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"io"
	"maps"
	"slices"

	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// patchedError means that functions which are to get a uprobe may be patched in
// some process: the patches give way first.
type patchedError struct {
	numbers []int
	why     string // why nothing cheaper serves the point; empty: that is found again
}

func (patchedError) Error() string { return "entry patches of other points give way first" }

// whyHandedOver is the reason of points that were handed over.
const whyHandedOver = "a uprobe of another point is at the function, where a patch cannot be as well"

// whyMissed is what a kernel without uprobe_multi adds to it: its breakpoint
// comes before the program behind it.
const whyMissed = "; calls of the moment in which it came were not counted"

// leaveToKernel gives functions to the kernel that are about to get a uprobe. A
// uprobe belongs to the file: it stands in every process that maps it, its
// breakpoint in the place of a patch's jump, and the patch would count nothing
// any more without anybody noticing. needed says that no patch would serve. The error is a patchedError where that
// would happen, [sites.ErrActed] where a tuning action needs a patch to stay,
// [sites.ErrJump] where a patch cannot give way.
func (p *Placer) leaveToKernel(image objfile.Image, file io.ReaderAt, symbols []uprobe.Symbol, needed bool) (*sites.Kept, error) {
	var keys, places []sites.Key
	for _, s := range symbols {
		key := sites.Key{Device: image.Device, Inode: image.Inode, Offset: s.Offset}
		keys = append(keys, key)
		key.Offset = uprobe.PlaceOf(file, s)
		places = append(places, key)
	}
	kept, patched, err := p.options.Functions.Leave(keys, places, needed)
	if err == nil && len(patched) > 0 {
		err = patchedError{numbers: patched}
	}
	return kept, err
}

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
func (p *Placer) handOver(numbers []int, then func(*sites.Kept, error)) {
	p.begin(func() {
		tenants, affected, kept, err := p.lockAll(numbers)
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
func (p *Placer) lockAll(numbers []int) (tenants []*tenant, affected map[uint16][]*tenant, kept *sites.Kept, err error) {
	var waited *tenant // locked
	for {
		p.mu.Lock()
		var busy *tenant
		if tenants, busy = tryLockAll(p.processes, waited); busy == nil {
			break
		}
		p.mu.Unlock()
		busy.mu.Lock()
		waited = busy
	}
	// Who comes now finds the functions given away before it patches any.
	defer p.mu.Unlock()
	affected, numbers = affectedBy(tenants, numbers)
	if kept, err = p.options.Functions.Take(numbers); err != nil {
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

// yields says whether a breakpoint at an entry with one of these numbers takes
// something from the placement.
func (p *placement) yields(numbers []int) bool {
	return p.mechanism == MechanismPatch && p.spec.GetPlace() != attunev1.Place_PLACE_EXIT &&
		slices.ContainsFunc(p.locals, func(local int) bool { return slices.Contains(numbers, local-shm.HookCount) })
}

func (p *placement) addNumbers(numbers []int) []int {
	for _, local := range p.locals {
		if number := local - shm.HookCount; !slices.Contains(numbers, number) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// handOverPoint has the kernel serve one point in some processes. The first
// attachment puts the breakpoint into all of them, so all are watched by then.
// The caller has them locked.
func handOverPoint(index uint16, tenants []*tenant) {
	var watches []uprobe.Watch
	for _, t := range tenants {
		spec, err := t.named(t.effective(index, t.placed[index].spec))
		if err != nil {
			continue // yield says so
		}
		if captures, err := t.capturesOf(spec); err == nil {
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
	now, err := t.named(t.effective(index, before.spec))
	var p *placement
	if err == nil {
		p, err = t.placeUprobe(index, now, byKernel{why: whyHandedOver, yielding: true, watches: watches})
	}
	if err != nil { // nothing would be counted any more
		t.takeOut(t.placer.ctx, index)
		t.stopWatching(index)
		t.refuse(index, before.spec, err)
		return
	}
	if _, whyNot := p.attachments[0].Mechanism(); whyNot != "" {
		p.reason += whyMissed
	}
	p.late = before.late
	p.locals = before.locals // for what is on its way
	for _, local := range p.locals {
		for _, f := range t.measured[local] {
			if err := t.process.Sites().Yield(f, local-shm.HookCount); err != nil {
				t.placer.log.Debug("patch under a uprobe", "pid", t.process.PID(), "function", f.Symbol.Name, "error", err)
			}
		}
	}
	t.tell(index, before.spec, p, nil)
}

// stopWatching ends a watch that no attachment of this process knows of.
func (t *tenant) stopWatching(index uint16) {
	if uprobes, err := t.placer.options.Uprobes(); err == nil {
		_ = uprobes.UnwatchProcess(t.process.PID(), index) // it may not have begun
	}
}

// refuse tells that a point is not placed; or, where patches have to give way
// first, has them do so and the point placed then. The caller holds t.mu.
func (t *tenant) refuse(index uint16, spec *attunev1.MeasurePoint, err error) {
	patched := patchedError{}
	if !errors.As(err, &patched) {
		t.tell(index, spec, nil, err)
		return
	}
	if patched.why != "" {
		t.whyKernel[index] = patched.why
	}
	t.placer.handOver(patched.numbers, func(kept *sites.Kept, err error) {
		if err == nil {
			t.ask(wish{index: index, spec: spec, done: func() { t.placer.giveBack(kept) }})
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if !t.gone && t.placed[index] == nil && t.placer.has(index, spec) {
			t.tell(index, spec, nil, err)
		}
	})
}
