// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// wantedSlot is a GOT slot that should lead to the stub of a function.
type wantedSlot struct {
	symbol   string
	address  uint64 // of the slot
	relro    bool
	function uint64 // where the slot should lead in the end
	origin   objfile.Origin
	bias     uint64 // of its object
}

func (s wantedSlot) to(stub int) redirection {
	return redirection{address: s.address, relro: s.relro, stub: stub, origin: s.origin, bias: s.bias}
}

// placeGOT redirects every GOT slot whose symbol matches to a stub of DMLib
// that counts and goes on to the function.
func (t *tenant) placeGOT(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, held bool) (*placement, error) {
	if err := t.stubbable(spec); err != nil {
		return nil, err
	}
	wanted, reason, err := t.wantedSlots(spec.GetFunction())
	if err != nil {
		return nil, err
	}
	delivery, captures, err := t.control(index, spec, MechanismGOT)
	if err != nil {
		return nil, err
	}
	p := &placement{mechanism: MechanismGOT, reason: reason, captured: captures, extra: costStub}
	p.reckon(spec)
	writer := t.slotWriter(held)
	ctx, cancel := context.WithTimeout(ctx, safePointTimeout)
	defer cancel()
	if err := t.redirectAll(ctx, delivery, writer, wanted, p); err != nil {
		t.takeBack(context.WithoutCancel(ctx), index, writer, p)
		return nil, err
	}
	switch {
	case len(p.symbols) == 0 && p.reason != "": // other points have them, or none leads there
		return nil, errors.New(p.reason)
	case len(p.symbols) == 0:
		return nil, fmt.Errorf("no object of the process calls %s through its GOT", name(spec.GetFunction()))
	}
	slices.Sort(p.symbols)
	return p, nil
}

// stubbable says why stubs of DMLib cannot serve a point, if so.
func (t *tenant) stubbable(spec *attunev1.MeasurePoint) error {
	memory := t.process.Memory()
	if memory == nil {
		return errNoDMLib
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
// The caller holds t.mu.
func (t *tenant) takeBack(ctx context.Context, index uint16, writer slotWriter, failed *placement) {
	fresh := failed.locals
	if before := t.placed[index]; before != nil {
		fresh = slices.DeleteFunc(fresh, func(local int) bool { return slices.Contains(before.locals, local) })
	}
	t.turnOff(ctx, writer, fresh)
}

// turnOff turns stubs and hooks off and gives the GOT slots of the stubs back.
// The caller holds t.mu.
func (t *tenant) turnOff(ctx context.Context, writer slotWriter, locals []int) {
	for _, local := range locals {
		writer.memory.ClearPoint(local)
		t.owner[local] = 0
	}
	t.giveBack(ctx, writer, locals)
}

// redirectAll binds a stub per function, turns it on, and leads the slots to
// it, in this order: a call never finds a stub that is not bound.
func (t *tenant) redirectAll(ctx context.Context, delivery shm.PointControl, writer slotWriter, wanted []wantedSlot, p *placement) error {
	if t.batch == nil { // else it was looked at
		t.forgetLost(writer)
	}
	var redirect []redirection
	for _, slot := range wanted {
		stub, err := t.stubFor(ctx, writer, slot.function)
		if err != nil {
			return fmt.Errorf("%s: %w", slot.symbol, err)
		}
		local := shm.HookCount + stub
		if owner := t.owner[local]; owner != 0 && owner != delivery.Point {
			p.reason = fmt.Sprintf("%s: %v", slot.symbol, errBusy)
			continue
		}
		if err := writer.memory.SetPoint(local, delivery); err != nil {
			return err
		}
		t.owner[local] = delivery.Point
		if !slices.Contains(p.locals, local) {
			p.locals = append(p.locals, local)
		}
		if !slices.Contains(p.symbols, slot.symbol) {
			p.symbols = append(p.symbols, slot.symbol)
		}
		if !t.leads(slot) {
			redirect = append(redirect, slot.to(stub))
		}
	}
	done, err := writer.lead(ctx, redirect)
	t.redirect = append(t.redirect, done...)
	return err
}

// forgetLost forgets the slots that lead elsewhere by now.
func (t *tenant) forgetLost(writer slotWriter) {
	t.redirect = slices.DeleteFunc(t.redirect, writer.lost)
}

// leads says whether a slot leads to a stub already.
func (t *tenant) leads(slot wantedSlot) bool {
	return slices.ContainsFunc(t.redirect, func(r redirection) bool { return r.address == slot.address })
}

// stubFor returns the stub of a function, binding one if there is none yet. The
// child of a process that had stubs was born with them, and with GOT slots that
// lead to them.
func (t *tenant) stubFor(ctx context.Context, writer slotWriter, function uint64) (int, error) {
	if t.stubs == nil {
		bound, err := writer.bound()
		if err != nil && !errors.Is(err, proc.ErrPermission) {
			return 0, err
		}
		t.stubs = bound
		for _, stub := range bound {
			t.nextStub = max(t.nextStub, stub+1)
		}
	}
	if stub, ok := t.stubs[function]; ok {
		return stub, nil
	}
	for {
		stub := t.nextStub
		if stub >= writer.app.StubCount || !t.placer.options.Functions.Stub(stub) {
			return 0, fmt.Errorf("all %d stubs of the process are in use or patched functions' numbers", writer.app.StubCount)
		}
		err := writer.bind(ctx, stub, function)
		if err != nil && !errors.Is(err, unix.EBUSY) {
			return 0, err
		}
		t.nextStub++
		if err == nil {
			t.stubs[function] = stub
			return stub, nil
		}
	}
}

// giveBack restores the slots that lead to the given stubs. What does not come
// to a safe point in time stays redirected: the stub passes calls through.
func (t *tenant) giveBack(ctx context.Context, writer slotWriter, locals []int) {
	ctx, cancel := context.WithTimeout(ctx, safePointTimeout)
	defer cancel()
	var kept, back []redirection
	for _, r := range t.redirect {
		if slices.Contains(locals, shm.HookCount+r.stub) {
			back = append(back, r)
		} else {
			kept = append(kept, r)
		}
	}
	left, err := writer.restore(ctx, slices.DeleteFunc(back, writer.lost))
	if err != nil {
		t.placer.log.Debug("GOT slots stay redirected", "pid", t.process.PID(), "slots", len(left), "reason", err)
	}
	t.redirect = slices.Concat(kept, left)
}

// wantedSlots finds the slots of all objects whose symbol matches, and where
// each should lead. Indirect functions and symbols that nothing defines are
// left out, with the reason; that is also what is not seen by the slots of the
// defining object alone.
func (t *tenant) wantedSlots(target *attunev1.FunctionTarget) (wanted []wantedSlot, reason string, err error) {
	images, err := t.images()
	if err != nil {
		return nil, "", err
	}
	images = slices.DeleteFunc(slices.Clone(images), func(i objfile.Image) bool { return i.Matches("libattune-dm*") })
	if !slices.ContainsFunc(images, func(i objfile.Image) bool { return i.Matches(target.GetObject()) }) {
		return nil, "", objfile.NoObject(images, target.GetObject())
	}
	functions := functionsOf{images: images, object: target.GetObject(), found: make(map[string]foundFunction)}
	others := false // call it as well
	for _, image := range images {
		slots, err := t.placer.slots.matching(image, target.GetSymbols()...)
		if err != nil {
			reason = err.Error()
			continue
		}
		for _, slot := range slots {
			function, err := functions.behind(t.process, image, slot)
			if err != nil {
				reason = err.Error()
				continue
			}
			others = others || target.GetObject() == "" || !image.Matches(target.GetObject())
			wanted = append(wanted, wantedSlot{
				symbol: slot.Symbol, address: image.Address(slot.VirtualAddress), relro: slot.RELRO, function: function,
				origin: slot.Origin, bias: image.Bias,
			})
		}
	}
	if len(wanted) > 0 && !others && reason == "" {
		reason = "no other object calls it through dynamic linking; calls through pointers are not counted"
	}
	return wanted, reason, nil
}

// functionsOf finds the functions of a target, by the names of slots.
type functionsOf struct {
	images []objfile.Image
	object string
	found  map[string]foundFunction
}

type foundFunction struct {
	address uint64
	err     error // why there is none
}

// behind is where the function lies to which a slot of an image leads.
func (f functionsOf) behind(process proc.Holder, image objfile.Image, slot objfile.Slot) (uint64, error) {
	at, known := f.found[slot.Symbol]
	if !known {
		resolved, err := objfile.ResolveIn(f.images, f.object, slot.Symbol, objfile.Function)
		at = foundFunction{resolved.Address, err}
		f.found[slot.Symbol] = at
	}
	if at.err != nil {
		return 0, at.err
	}
	word := make([]byte, 8)
	if proc.Read(process, image.Address(slot.VirtualAddress), word) != nil {
		return at.address, nil // writing will tell
	}
	if other, yes := objfile.Elsewhere(f.images, slot.Symbol, at.address, binary.LittleEndian.Uint64(word)); yes {
		return 0, fmt.Errorf("%s calls that of %s, not this one", image.Name(), other.Name())
	}
	return at.address, nil
}

// name is what people call a target.
func name(target *attunev1.FunctionTarget) string {
	symbols := strings.Join(target.GetSymbols(), ", ")
	if target.GetObject() == "" {
		return symbols
	}
	return target.GetObject() + ":" + symbols
}
