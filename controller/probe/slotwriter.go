// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// slotWriter writes a process' GOT: from outside while the process is held in
// the start gate, by DMLib at its next hook otherwise. The kernel promises no
// whole words for writes from outside, so a slot that a thread may be jumping
// through is written by DMLib only.
type slotWriter struct {
	memory  *shm.Memory
	app     shm.App
	process proc.Holder
	held    bool
}

// redirection is one GOT slot that leads to a stub or hook.
type redirection struct {
	address uint64
	old     uint64
	relro   bool
	stub    int
	hook    uint64         // where it leads instead, if not 0
	origin  objfile.Origin // in an object that is loaded at bias
	bias    uint64
}

// ledSlots are redirections that are made.
type ledSlots []redirection

// have says whether a slot is among them.
func (l *ledSlots) have(address uint64) bool {
	return slices.ContainsFunc(*l, func(r redirection) bool { return r.address == address })
}

const anyHook = shm.AtAlloc | shm.AtLock | shm.AtIO | shm.AtStub

// slotWriterOf is for a process with DMLib. held says that it waits in the start gate.
func slotWriterOf(process Process, held bool) slotWriter {
	memory := process.Memory()
	return slotWriter{memory: memory, app: memory.App(), process: process, held: held}
}

// bound reads which stubs are bound, and to which functions.
func (w slotWriter) bound() (map[uint64]int, error) {
	stubs := make(map[uint64]int)
	content := make([]byte, 8*w.app.StubCount)
	if err := proc.Read(w.process, w.app.StubTarget, content); err != nil {
		return stubs, err
	}
	for i := range w.app.StubCount {
		if function := binary.LittleEndian.Uint64(content[8*i:]); function != 0 && function != w.app.StubUnbound {
			stubs[function] = i
		}
	}
	return stubs, nil
}

// bind leads a stub that is not bound to its function. No thread goes through
// it yet, so its target can be written from outside at any time; DMLib does it
// where the kernel does not allow that, and refuses with EBUSY if the stub
// is bound.
func (w slotWriter) bind(ctx context.Context, stub int, function uint64) error {
	err := w.store(w.app.StubTarget+uint64(stub)*8, function)
	if !errors.Is(err, proc.ErrPermission) {
		return err
	}
	_, err = w.memory.Run(ctx, shm.Command{Op: shm.OpStub, At: anyHook, Args: [8]uint64{uint64(stub), function}})
	return err
}

// goal is where a slot leads.
func (w slotWriter) goal(r redirection) uint64 {
	if r.hook != 0 {
		return r.hook
	}
	return w.stubAddress(r.stub)
}

func (w slotWriter) stubAddress(stub int) uint64 {
	return w.app.StubEntry + uint64(stub*w.app.StubSize)
}

// lost says that a slot does not lead to its stub or hook any more: its library was
// unloaded, and the address may mean anything by now, or the loader bound it
// anew.
func (w slotWriter) lost(r redirection) bool {
	now, err := w.load(r.address)
	if errors.Is(err, proc.ErrPermission) {
		return false // cannot be told
	}
	return err != nil || now != w.goal(r)
}

// lead makes slots lead to their stubs or hooks and returns those that do, with what
// they held before.
func (w slotWriter) lead(ctx context.Context, slots []redirection) ([]redirection, error) {
	done := make([]bool, len(slots))
	err := w.each(ctx, len(slots), func(ctx context.Context, i int) error {
		err := w.leadOne(ctx, &slots[i])
		done[i] = err == nil
		if unloaded(err) {
			return nil // nobody calls through it any more
		}
		return err
	})
	var led []redirection
	for i, ok := range done {
		if ok {
			led = append(led, slots[i])
		}
	}
	return led, err
}

// unloaded says that a slot could not be written because its object has gone.
func unloaded(err error) bool { return errors.Is(err, unix.ESTALE) || errors.Is(err, unix.EFAULT) }

// leadTries bounds how often a slot is read again that changed before it was
// written; the loader changes one once, when it binds it at its first call. It is
// not to be disturbed while it loads an object: leadPause lies between two tries.
const (
	leadTries = 4
	leadPause = 5 * time.Millisecond
)

// leadOne makes one slot lead to its stub or hook and notes what it held.
func (w slotWriter) leadOne(ctx context.Context, slot *redirection) (err error) {
	for range leadTries {
		if slot.old, err = w.load(slot.address); err != nil {
			return err
		}
		if err = unix.EBUSY; w.held || slot.origin.Relocated(slot.old, slot.bias) {
			err = w.set(ctx, *slot, slot.old, w.goal(*slot))
		}
		switch {
		case errors.Is(err, unix.EBUSY):
			time.Sleep(leadPause)
		case !errors.Is(err, unix.EAGAIN):
			return err
		}
	}
	return err
}

// restore puts the old contents back and returns the slots where it could not.
// One that cannot be restored is no reason to leave the others; one that leads
// elsewhere by now is no longer ours.
func (w slotWriter) restore(ctx context.Context, slots []redirection) ([]redirection, error) {
	failed := make([]error, len(slots))
	_ = w.each(ctx, len(slots), func(_ context.Context, i int) error {
		failed[i] = w.set(ctx, slots[i], w.goal(slots[i]), slots[i].old)
		return nil
	})
	var left []redirection
	for i, err := range failed {
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EFAULT) {
			left = append(left, slots[i])
		}
	}
	return left, errors.Join(failed...)
}

// each runs f for every index, leaving some of the mailbox to tuning actions.
func (w slotWriter) each(ctx context.Context, n int, f func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(shm.MailboxSize - 4)
	for i := range n {
		group.Go(func() error { return f(ctx, i) })
	}
	return group.Wait()
}

// set writes a slot that holds from; EAGAIN if it does not. In the start gate
// nothing runs that could have changed it.
func (w slotWriter) set(ctx context.Context, slot redirection, from, to uint64) error {
	if w.held {
		return w.store(slot.address, to)
	}
	const compare = 1
	command := shm.Command{Op: shm.OpGOT, At: anyHook, Args: [8]uint64{0: slot.address, 2: to, 3: compare, 4: from}}
	if slot.relro {
		command.Args[5] = 1
	}
	if to == w.goal(slot) {
		_, err := w.memory.Run(ctx, command.Of(slot.origin, slot.bias))
		return err
	}
	_, err := w.memory.RunRetrying(ctx, command) // what is there is ours
	return err
}

func (w slotWriter) store(address, value uint64) error {
	content := binary.LittleEndian.AppendUint64(nil, value)
	return proc.Write(w.process, address, content)
}

func (w slotWriter) load(address uint64) (uint64, error) { return proc.ReadWord(w.process, address) }
