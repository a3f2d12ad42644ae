// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/probe/symbols"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mechanisms serve the points of one process, each by the cheapest that can. They are
// guarded by tenant.mu.
type mechanisms struct {
	*host
	hooks   hooks
	stubs   stubs
	patches patches
	uprobes uprobes
	// turns says how points come to the kernel whose turn it is when patches have given way.
	turns map[uint16]byKernel
}

func newMechanisms(common *common, kernel *kernel, process Process) *mechanisms {
	h := &host{common: common, process: process}
	m := &mechanisms{
		host: h, hooks: hooks{host: h, users: make(map[int][]uint16)}, stubs: stubs{host: h}, patches: patches{host: h, measured: make(map[int][]sites.Function)},
		uprobes: uprobes{h, kernel}, turns: make(map[uint16]byKernel),
	}
	m.hooks.stubbed, m.stubs.hooked = &m.stubs.redirect, &m.hooks.redirect
	return m
}

// serve chooses the mechanism for a point that is not in the process. DMLib delivers what
// a level leaves of it. The kernel delivers what was asked for: all levels cost the same
// there, and what it watches in a file has one delivery for all processes.
func (m *mechanisms) serve(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, level budget.Level, held bool) (*placement, error) {
	left := delivered(spec, level)
	switch target := spec.GetTarget().(type) {
	case *attunev1.MeasurePoint_Hook:
		return m.hooks.place(ctx, index, left, held)
	case *attunev1.MeasurePoint_Function:
		// Without images every mechanism says so itself.
		if images, err := m.images(); err == nil {
			// What an indirect function stands for is known in the process.
			if err := symbols.CheckNames(images, target.Function); err != nil && !errors.Is(err, objfile.ErrIndirect) {
				return nil, err
			}
		}
		return m.placeFunction(ctx, index, spec, left, held)
	case *attunev1.MeasurePoint_Usdt:
		return m.uprobes.place(index, spec, byKernel{why: "a static probe stands within a function"})
	}
	return nil, fmt.Errorf("measure point %q has no target that is known here", spec.GetId())
}

// placeFunction takes the first of GOT, entry patches and uprobes that serves
// all that is asked for, and entry patches for some of it where none does.
func (m *mechanisms) placeFunction(ctx context.Context, index uint16, spec, left *attunev1.MeasurePoint, held bool) (*placement, error) {
	captures, err := m.capturesOf(spec)
	if err != nil {
		return nil, err // whatever the mechanism
	}
	if captures.kernelOnly() {
		return m.placeInKernel(index, spec)
	}
	if captures.cost(left) > costTrap {
		p, err := m.uprobes.place(index, spec, byKernel{
			why: "the kernel reads memory for less than DMLib, which would ask it at each hit", preferred: true,
		})
		if err == nil || errors.As(err, &patchedError{}) {
			return p, err
		}
	}
	why := errors.New("by its GOT slots, calls within the object would be missed")
	if spec.GetFunction().GetDynamicCallsOnly() {
		p, err := m.stubs.place(ctx, index, left, nil, held)
		if err == nil || ended(m.process, err) {
			return p, err
		}
		why = err
	}
	p, err := m.patches.place(ctx, index, left, nil, why.Error(), false)
	m.learn(errors.Join(why, err))
	if err == nil || ended(m.process, err) {
		return p, err
	}
	by := byKernel{why: fmt.Sprintf("%v; entry patch: %v", why, err), yielding: errors.Is(err, sites.ErrWatched), busy: isBusy(err)}
	if turn, waited := m.turns[index]; waited { // by now it is that the function is the kernel's
		by = turn
		delete(m.turns, index)
	}
	return m.placeUnpatched(ctx, index, spec, left, by, why, err)
}

// placeInKernel places what DMLib cannot take.
func (m *mechanisms) placeInKernel(index uint16, spec *attunev1.MeasurePoint) (*placement, error) {
	p, err := m.uprobes.place(index, spec, byKernel{why: errKernelKey.Error()})
	if err != nil && !errors.As(err, &patchedError{}) {
		return nil, fmt.Errorf("%w; uprobe: %w", errKernelKey, err)
	}
	return p, err
}

// placeUnpatched leaves a function to the kernel, or some of what is asked for to
// patches, where the kernel cannot either. cheaper is why nothing cheaper than patches
// serves, patching why they do not serve all.
func (m *mechanisms) placeUnpatched(ctx context.Context, index uint16, spec, left *attunev1.MeasurePoint, by byKernel, cheaper, patching error) (*placement, error) {
	p, err := m.uprobes.place(index, spec, by)
	patched := patchedError{}
	switch {
	case err == nil:
		if p.busy {
			p.reason += whyAgain
		}
		return p, nil
	case errors.As(err, &patched):
		return nil, patchedError{patched.numbers, by}
	}
	why := fmt.Errorf("%s; uprobe: %w", by.why, err)
	if errors.Is(patching, patch.ErrUnpatchable) {
		reason := why.Error()
		if isBusy(patching) { // that passes
			reason = cheaper.Error()
		}
		if p, err = m.patches.place(ctx, index, left, nil, reason, true); err == nil {
			return p, nil
		}
	}
	if passes(cheaper) || passes(patching) || passes(err) {
		why = passingError{why}
	}
	return nil, why
}

// extend has more of a point served, if it is placed, where the process has loaded
// objects since. It is as late as it was.
func (m *mechanisms) extend(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, before *placement, held bool) (p *placement, err error) {
	switch p = before; before.mechanism {
	case MechanismHook:
		err = m.hooks.extend(ctx, index, spec, held)
	case MechanismGOT:
		p, err = m.stubs.place(ctx, index, spec, before, held)
	case MechanismPatch:
		p, err = m.patches.place(ctx, index, spec, before, before.why, true)
	}
	if err != nil {
		return nil, err
	}
	p.late = before.late
	return p, nil
}

// stop stops what serves points and gives their GOT slots back. Stubs stay
// bound: a child forked meanwhile may still call through them.
func (m *mechanisms) stop(ctx context.Context, indexes []uint16, gone []*placement) {
	if memory := m.process.Memory(); memory != nil {
		var locals []int
		for _, p := range gone {
			locals = append(locals, p.locals...)
		}
		writer := slotWriterOf(m.process)
		m.stubs.turnOff(ctx, writer, locals)
		m.hooks.leave(ctx, writer, indexes...)
		m.patches.drop(context.WithoutCancel(ctx), memory, locals, nil)
		if m.batch != nil && m.batch.patches != nil {
			m.batch.patches.Leave()
		}
	}
	for i, p := range gone {
		m.uprobes.stop(indexes[i], p)
	}
}

// begin begins a batch, and returns what ends it.
func (m *mechanisms) begin() (end func()) {
	end = m.host.begin()
	if m.process.Memory() != nil && len(m.stubs.redirect) > 0 {
		m.stubs.forgetLost(slotWriterOf(m.process))
	}
	return end
}

// prepare does for many points together what has to wait for a safe point: GOT
// slots are led to stubs, which pass calls through until their points are set,
// memory for patches is mapped, and whole jumps are written. What fails here is
// tried again, and reported, by the point that needs it. The returned function
// gives back what no point needed.
func (m *mechanisms) prepare(ctx context.Context, wanted []wish, held bool) (unneeded func()) {
	ctx, cancel := context.WithTimeout(ctx, safePointTimeout)
	defer cancel()
	if m.process.Memory() == nil {
		return func() {}
	}
	var slots []wantedSlot
	var functions []sites.Function
	for _, w := range wanted {
		s, f := m.needs(w)
		slots, functions = append(slots, s...), append(functions, f...)
	}
	if len(functions) > 0 {
		m.patchesOfBatch().Reserve(ctx, functions)
		m.patchesOfBatch().Lead(ctx, functions)
	}
	writer := slotWriterOf(m.process).inGate(ctx, held)
	stubs := m.stubs.leadAll(ctx, writer, slots)
	return func() {
		unused := slices.DeleteFunc(stubs, func(local int) bool { return m.owner[local] != 0 })
		if len(unused) > 0 {
			m.stubs.giveBack(context.WithoutCancel(ctx), writer, unused)
		}
	}
}

// needs lists the GOT slots, or else the functions whose entries are patched,
// by which a point will be served unless something is in the way.
func (m *mechanisms) needs(w wish) ([]wantedSlot, []sites.Function) {
	if w.spec.GetFunction() == nil {
		return nil, nil
	}
	named, err := m.named(w.spec)
	if err != nil {
		return nil, nil
	}
	target := named.GetFunction()
	if c, err := m.capturesOf(named); err != nil || c.kernelOnly() || c.cost(named) > costTrap {
		return nil, nil
	}
	if target.GetDynamicCallsOnly() && m.stubs.stubbable(named) == nil {
		slots, _, err := m.wantedSlots(target)
		if err == nil && len(slots) > 0 {
			return slots, nil
		}
	}
	if named.GetPlace() == attunev1.Place_PLACE_EXIT {
		return nil, nil
	}
	functions, err := m.entriesOf(target)
	if err != nil {
		return nil, nil
	}
	return nil, functions
}
