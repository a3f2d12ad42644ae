// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/proc"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// hooks are DMLib's own, in one process. Some stand before their functions by name;
// to the others GOT slots are led while a point wants them. It is guarded by tenant.mu.
type hooks struct {
	*host
	stubbed  *ledSlots        // GOT slots that lead to stubs
	users    map[int][]uint16 // points, by hook
	redirect ledSlots         // GOT slots that lead to hooks
}

// place turns one of DMLib's hooks on.
func (h *hooks) place(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, held bool) (*placement, error) {
	hook, ok := shm.HookByName(spec.GetHook())
	if !ok {
		return nil, fmt.Errorf("DMLib has no hook %q", spec.GetHook())
	}
	memory := h.process.Memory()
	if memory == nil {
		if p, ok := h.process.(latecomer); ok && p.Expected() {
			return nil, errExpected
		}
		return nil, withoutDMLib(h.process)
	}
	delivery, captures, err := h.control(index, spec, MechanismHook)
	if err != nil {
		return nil, err
	}
	p := &placement{mechanism: MechanismHook, symbols: []string{hook.Name}, captured: captures}
	local := hook.Index
	p.reason, err = h.enter(ctx, index, hook, held)
	switch owner := h.owner[local]; {
	case err != nil:
	case owner != 0 && owner != index:
		p.reason, p.shared = whyShared, true
		local, err = memory.Share(hook.Index, delivery)
	default:
		err = memory.SetPoint(local, delivery)
	}
	if err != nil {
		h.leave(context.WithoutCancel(ctx), slotWriterOf(h.process).inGate(ctx, held), index)
		return nil, fmt.Errorf("hook %s: %w", hook.Name, err)
	}
	p.reckon(spec)
	h.owner[local] = index
	p.locals = []int{local}
	return p, nil
}

// whyShared is the reason of points that share a hook.
const whyShared = "another measure point with other settings has the hook as well"

// enter leads the slots of all objects to a hook for a point, where it stands before its
// function in no other way; what leads there already stays. The reason says what calls
// are not seen.
func (h *hooks) enter(ctx context.Context, index uint16, hook shm.Hook, held bool) (reason string, err error) {
	if !hook.Led() {
		return "", nil
	}
	writer := slotWriterOf(h.process).inGate(ctx, held)
	entry, err := writer.hookEntry(hook)
	if err != nil {
		return "", err
	}
	wanted, reason, err := h.wantedSlots(&attunev1.FunctionTarget{Symbols: []string{hook.Name}})
	if err != nil {
		return "", err
	}
	h.redirect = slices.DeleteFunc(h.redirect, writer.lost)
	var fresh []shm.Slot
	for _, slot := range wanted {
		switch {
		case slot.function != entry.behind:
			reason = "calls of a function of that name which is not the C library's are not counted"
		case h.stubbed.have(slot.Address):
			reason = whyStub
		case !h.redirect.have(slot.Address):
			fresh = append(fresh, slot.to(entry.hook))
		}
	}
	if !slices.Contains(h.users[hook.Index], index) {
		h.users[hook.Index] = append(h.users[hook.Index], index)
	}
	ctx, cancel := h.atSafePoint(ctx)
	defer cancel()
	led, err := writer.lead(ctx, fresh)
	h.learn(err)
	for i := range led {
		if led[i].Old == entry.hook { // a forked child is born with such slots
			led[i].Old = entry.behind
		}
	}
	h.redirect = append(h.redirect, led...)
	return h.withUnseen(reason), err
}

// extend has a point that is placed see the calls of objects that the process has
// loaded since.
func (h *hooks) extend(ctx context.Context, index uint16, spec *attunev1.MeasurePoint, held bool) error {
	hook, _ := shm.HookByName(spec.GetHook())
	_, err := h.enter(ctx, index, hook, held)
	return err
}

// whyStub is the reason of a hook that some slots do not lead to.
const whyStub = "calls that another measure point counts through the GOT are not counted"

// leave ends what points want of hooks: the slots of those that nobody wants any more
// are given back.
func (h *hooks) leave(ctx context.Context, writer slotWriter, indexes ...uint16) {
	unwanted := make(map[uint64]bool)
	for hook, users := range h.users {
		users = slices.DeleteFunc(users, func(user uint16) bool { return slices.Contains(indexes, user) })
		if h.users[hook] = users; len(users) > 0 {
			continue
		}
		delete(h.users, hook)
		if entry, err := writer.hookEntry(shm.Hook{Index: hook}); err == nil {
			unwanted[entry.hook] = true
		}
	}
	h.redirect = h.restore(ctx, writer, h.redirect, unwanted)
}

// hookEntry is what DMLib says of a hook that is led to.
type hookEntry struct{ hook, behind uint64 }

// hookEntry reads where a hook is, and the function that it goes on to.
func (w slotWriter) hookEntry(hook shm.Hook) (entry hookEntry, err error) {
	content := make([]byte, abi.HookEntryBytes)
	if err := proc.Read(w.process, w.app.HookEntry+uint64(hook.Index)*abi.HookEntryBytes, content); err != nil {
		return entry, err
	}
	entry.hook = binary.LittleEndian.Uint64(content[abi.HookEntryHookAt:])
	entry.behind = binary.LittleEndian.Uint64(content[abi.HookEntryBehindAt:])
	if entry.hook == 0 {
		return entry, fmt.Errorf("the process has no %s", hook.Name)
	}
	return entry, nil
}
