// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/probe/symbols"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/proc"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// stubs leads GOT slots of one process to stubs of DMLib. It is guarded by tenant.mu.
type stubs struct {
	*host
	hooked   *ledSlots      // GOT slots that lead to hooks
	bound    map[uint64]int // function address -> stub, for good; nil: not read yet
	next     int            // no stub from this one on is bound
	redirect ledSlots       // GOT slots that lead to stubs
}

// place redirects every GOT slot whose symbol matches to a stub of DMLib
// that counts and goes on to the function. before is what serves the point already,
// or nil.
func (s *stubs) place(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, before *placement, held bool) (*placement, error) {
	if err := s.stubbable(spec); err != nil {
		return nil, err
	}
	wanted, reason, err := s.wantedSlots(spec.GetFunction())
	if err != nil {
		return nil, err
	}
	delivery, captures, err := s.control(index, spec, MechanismGOT)
	if err != nil {
		return nil, err
	}
	p := &placement{mechanism: MechanismGOT, reason: reason, captured: captures}
	p.reckon(spec)
	writer := slotWriterOf(s.process).inGate(ctx, held)
	ctx, cancel := s.atSafePoint(ctx)
	defer cancel()
	if err := s.redirectAll(ctx, delivery, writer, wanted, p); err != nil {
		s.takeBack(context.WithoutCancel(ctx), before, writer, p)
		return nil, err
	}
	if len(p.symbols) == 0 { // p.reason: other points have them, or none leads there
		none := fmt.Sprintf("no object of the process calls %s through its GOT", symbols.TargetName(spec.GetFunction()))
		return nil, errors.New(s.withUnseen(cmp.Or(p.reason, none)))
	}
	p.reason = s.withUnseen(p.reason)
	slices.Sort(p.symbols)
	return p, nil
}

// stubbable says why stubs of DMLib cannot serve a point, if so.
func (s *stubs) stubbable(spec *attunev1.MeasurePoint) error {
	memory := s.process.Memory()
	if memory == nil {
		return withoutDMLib(s.process)
	}
	app := memory.App()
	switch place := spec.GetPlace(); {
	case !app.Ready || app.StubEntry == 0 || app.StubTarget == 0:
		return errors.New("DMLib has no stubs in this process")
	case place == attunev1.Place_PLACE_EXIT || place == attunev1.Place_PLACE_BOTH:
		return errors.New("a stub sees the entry only")
	case spec.GetParameter() >= shm.Parameters:
		return fmt.Errorf("a stub takes one of the first %d integer parameters", shm.Parameters)
	}
	return nil
}

// takeBack undoes a placement that failed halfway, except for what served the
// point before: whatever serves it instead would count the same calls again.
func (s *stubs) takeBack(ctx context.Context, before *placement, writer slotWriter, failed *placement) {
	fresh := failed.locals
	if before != nil {
		fresh = slices.DeleteFunc(fresh, func(local int) bool { return slices.Contains(before.locals, local) })
	}
	s.turnOff(ctx, writer, fresh)
}

// turnOff turns stubs and hooks off and gives the GOT slots of the stubs back.
func (s *stubs) turnOff(ctx context.Context, writer slotWriter, locals []int) {
	for _, local := range locals {
		writer.memory.ClearPoint(local)
		s.owner[local] = 0
	}
	s.giveBack(ctx, writer, locals)
}

// redirectAll binds a stub per function, turns it on, and leads the slots to
// it, in this order: a call never finds a stub that is not bound.
func (s *stubs) redirectAll(ctx context.Context, delivery shm.PointControl, writer slotWriter, wanted []wantedSlot, p *placement) error {
	if s.batch == nil { // else it was looked at
		s.forgetLost(writer)
	}
	var redirect []shm.Slot
	for _, slot := range wanted {
		if s.hooked.have(slot.Address) {
			p.reason = fmt.Sprintf("%s: a hook of DMLib has its calls, for another measure point", slot.symbol)
			continue
		}
		stub, err := s.stubFor(ctx, writer, slot.function)
		if err != nil {
			return fmt.Errorf("%s: %w", slot.symbol, err)
		}
		local := shm.HookCount + stub
		if owner := s.owner[local]; owner != 0 && owner != delivery.Point {
			p.reason = fmt.Sprintf("%s: %v", slot.symbol, errBusy)
			continue
		}
		if err := writer.memory.SetPoint(local, delivery); err != nil {
			return err
		}
		s.owner[local] = delivery.Point
		if !slices.Contains(p.locals, local) {
			p.locals = append(p.locals, local)
		}
		if !slices.Contains(p.symbols, slot.symbol) {
			p.symbols = append(p.symbols, slot.symbol)
		}
		if !s.redirect.have(slot.Address) {
			redirect = append(redirect, slot.to(writer.stubAddress(stub)))
		}
	}
	done, err := writer.lead(ctx, redirect)
	s.redirect = append(s.redirect, done...)
	return err
}

// forgetLost forgets the slots that lead elsewhere by now.
func (s *stubs) forgetLost(writer slotWriter) {
	s.redirect = slices.DeleteFunc(s.redirect, writer.lost)
}

// stubFor returns the stub of a function, binding one if there is none yet. The
// child of a process that had stubs was born with them, and with GOT slots that
// lead to them.
func (s *stubs) stubFor(ctx context.Context, writer slotWriter, function uint64) (int, error) {
	if s.bound == nil {
		if err := s.process.Sites().DisarmOthers(); err != nil && !errors.Is(err, proc.ErrPermission) {
			return 0, err // a patch with the stub's number would count as well
		}
		bound, err := writer.bound()
		if err != nil && !errors.Is(err, proc.ErrPermission) {
			return 0, err
		}
		s.bound = bound
		for _, stub := range bound {
			s.next = max(s.next, stub+1)
		}
	}
	if stub, ok := s.bound[function]; ok {
		return stub, nil
	}
	for {
		stub := s.next
		if stub >= writer.app.StubCount || !s.options.Functions.Stub(stub) {
			return 0, fmt.Errorf("all %d stubs of the process are in use or patched functions' numbers", writer.app.StubCount)
		}
		err := writer.bind(ctx, stub, function)
		if err != nil && !errors.Is(err, unix.EBUSY) {
			return 0, err
		}
		s.next++
		if err == nil {
			s.bound[function] = stub
			return stub, nil
		}
	}
}

// giveBack restores the slots that lead to the given stubs.
func (s *stubs) giveBack(ctx context.Context, writer slotWriter, locals []int) {
	unwanted := make(map[uint64]bool)
	for _, local := range locals {
		unwanted[writer.stubAddress(local-shm.HookCount)] = true
	}
	s.redirect = s.restore(ctx, writer, s.redirect, unwanted)
}

// restore puts back those of led slots that lead to unwanted stubs or hooks, and returns
// the others. What does not come to a safe point in time stays led: stub and hook pass
// calls through.
func (h *host) restore(ctx context.Context, writer slotWriter, led ledSlots, unwanted map[uint64]bool) (stay ledSlots) {
	ctx, cancel := context.WithTimeout(ctx, safePointTimeout)
	defer cancel()
	var back []shm.Slot
	for _, s := range led {
		switch {
		case !unwanted[s.To]:
			stay = append(stay, s)
		case !writer.lost(s):
			back = append(back, s)
		}
	}
	left, err := writer.restore(ctx, back)
	if err != nil {
		h.log.Debug("GOT slots stay redirected", "pid", h.process.PID(), "slots", len(left), "reason", err)
	}
	return append(stay, left...)
}

// leadAll makes slots lead to stubs that pass calls through, all at once, and
// returns the stubs' local points.
func (s *stubs) leadAll(ctx context.Context, writer slotWriter, slots []wantedSlot) (locals []int) {
	var redirect []shm.Slot
	for _, slot := range slots {
		if s.redirect.have(slot.Address) || s.hooked.have(slot.Address) || slices.ContainsFunc(redirect, func(r shm.Slot) bool { return r.Address == slot.Address }) {
			continue
		}
		stub, err := s.stubFor(ctx, writer, slot.function)
		if err != nil {
			break
		}
		redirect = append(redirect, slot.to(writer.stubAddress(stub)))
		locals = append(locals, shm.HookCount+stub)
	}
	done, err := writer.lead(ctx, redirect)
	s.redirect = append(s.redirect, done...)
	if err != nil {
		s.log.Debug("GOT slots", "pid", s.process.PID(), "led", len(done), "of", len(redirect), "error", err)
	}
	return locals
}
