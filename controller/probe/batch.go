// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"slices"
	"sync"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// wish is a point that is to be placed in a process, or taken out of it.
type wish struct {
	index uint16
	spec  *attunev1.MeasurePoint
	gone  bool
	done  func() // called when it is fulfilled, or cannot be; may be nil
}

// wishes are those that came while others were being fulfilled. They are
// fulfilled together: what a hundred points need of a process is read once, and
// waits for one safe point.
type wishes struct {
	mu      sync.Mutex // guards what follows; a leaf lock
	waiting []wish
	busy    bool // some goroutine will look again
}

// ask has a wish fulfilled. It returns at once.
func (t *tenant) ask(w wish) {
	q := &t.wishes
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, w)
	if !q.busy {
		q.busy = true
		t.placer.begin(t.fulfilAll)
	}
}

// fulfilAll goes on until nobody wishes anything.
func (t *tenant) fulfilAll() {
	for {
		q := &t.wishes
		q.mu.Lock()
		some := q.waiting
		q.waiting, q.busy = nil, len(some) > 0
		q.mu.Unlock()
		if len(some) == 0 {
			return
		}
		t.fulfil(t.placer.ctx, some, false)
		for _, w := range some {
			if w.done != nil {
				w.done()
			}
		}
	}
}

// fulfil takes points out and places others. It returns false if ctx ended
// before a held process had all its points.
func (t *tenant) fulfil(ctx context.Context, wishes []wish, held bool) (all bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gone {
		return true
	}
	defer t.begin()()
	var gone, wanted []wish
	for _, w := range wishes {
		switch {
		case w.gone:
			gone = append(gone, w)
		case t.placer.has(w.index, w.spec):
			wanted = append(wanted, w)
		}
	}
	t.remove(ctx, gone)
	if len(wanted) > 1 {
		defer t.prepare(ctx, wanted, held)()
	}
	all = true
	for _, w := range wanted {
		if !t.place(ctx, w.index, w.spec, held) {
			all = false
		}
	}
	return all
}

// batch is what is known of a process while some points come and go together.
type batch struct {
	images  func() ([]objfile.Image, error)
	patches *sites.Batch // nil: none was needed yet
}

// begin begins a batch, and returns what ends it. The caller holds t.mu.
func (t *tenant) begin() (end func()) {
	t.batch = &batch{images: sync.OnceValues(t.process.Images)}
	if t.process.Memory() != nil && len(t.redirect) > 0 {
		t.forgetLost(t.slotWriter(false))
	}
	return func() {
		if t.batch.patches != nil {
			t.batch.patches.Close()
		}
		t.batch = nil
	}
}

// images are those of the process, which others of the batch use as well: they
// are not to be modified. The caller holds t.mu.
func (t *tenant) images() ([]objfile.Image, error) {
	if t.batch != nil {
		return t.batch.images()
	}
	return t.process.Images()
}

// measure is [sites.Sites.Measure]. The caller holds t.mu.
func (t *tenant) measure(ctx context.Context, f sites.Function, number int, at sites.Where) error {
	if t.batch == nil {
		return t.process.Sites().Measure(ctx, f, number, at)
	}
	return t.patches().Measure(ctx, f, number, at)
}

// patches are those of the batch under way. The caller holds t.mu.
func (t *tenant) patches() *sites.Batch {
	if t.batch.patches == nil {
		t.batch.patches = t.process.Sites().Batch()
	}
	return t.batch.patches
}

// prepare does for many points together what has to wait for a safe point: GOT
// slots are led to stubs, which pass calls through until their points are set,
// memory for patches is mapped, and whole jumps are written. What fails here is tried again, and
// reported, by the point that needs it. The returned function gives back what
// no point needed. The caller holds t.mu.
func (t *tenant) prepare(ctx context.Context, wanted []wish, held bool) (unneeded func()) {
	ctx, cancel := context.WithTimeout(ctx, safePointTimeout)
	defer cancel()
	if t.process.Memory() == nil {
		return func() {}
	}
	var slots []wantedSlot
	var functions []sites.Function
	for _, w := range wanted {
		s, f := t.needs(w)
		slots, functions = append(slots, s...), append(functions, f...)
	}
	if len(functions) > 0 {
		t.patches().Reserve(ctx, functions)
		t.patches().Lead(ctx, functions)
	}
	writer := t.slotWriter(held)
	stubs := t.leadAll(ctx, writer, slots)
	return func() {
		unused := slices.DeleteFunc(stubs, func(local int) bool { return t.owner[local] != 0 })
		if len(unused) > 0 {
			t.giveBack(context.WithoutCancel(ctx), writer, unused)
		}
	}
}

// needs lists the GOT slots, or else the functions whose entries are patched,
// by which a point will be served unless something is in the way.
func (t *tenant) needs(w wish) ([]wantedSlot, []sites.Function) {
	target := w.spec.GetFunction()
	if target == nil {
		return nil, nil
	}
	named, err := t.named(w.spec)
	if err != nil {
		return nil, nil
	}
	if c, err := t.capturesOf(named); err != nil || c.cost(named) > costTrap {
		return nil, nil
	}
	if target.GetDynamicCallsOnly() && t.stubbable(w.spec) == nil {
		slots, _, err := t.wantedSlots(target)
		if err == nil && len(slots) > 0 {
			return slots, nil
		}
	}
	if w.spec.GetPlace() == attunev1.Place_PLACE_EXIT {
		return nil, nil
	}
	functions, err := t.entriesOf(target)
	if err != nil {
		return nil, nil
	}
	return nil, functions
}

// leadAll makes slots lead to stubs that pass calls through, all at once, and
// returns the stubs' local points. The caller holds t.mu.
func (t *tenant) leadAll(ctx context.Context, writer slotWriter, slots []wantedSlot) (locals []int) {
	var redirect []redirection
	for _, slot := range slots {
		if t.leads(slot) || slices.ContainsFunc(redirect, func(r redirection) bool { return r.address == slot.address }) {
			continue
		}
		stub, err := t.stubFor(ctx, writer, slot.function)
		if err != nil {
			break
		}
		redirect = append(redirect, slot.to(stub))
		locals = append(locals, shm.HookCount+stub)
	}
	done, err := writer.lead(ctx, redirect)
	t.redirect = append(t.redirect, done...)
	if err != nil {
		t.placer.log.Debug("GOT slots", "pid", t.process.PID(), "led", len(done), "of", len(redirect), "error", err)
	}
	return locals
}
