// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/proc"
)

// slotWriter writes a process' GOT: from outside while the process is held in
// the start gate, by DMLib at its next hook otherwise, and once the process waits no
// longer. The kernel promises no whole words for writes from outside, so a slot that a
// thread may be jumping through is written by DMLib only.
type slotWriter struct {
	memory  *shm.Memory
	app     shm.App
	process proc.Holder
	until   time.Time // the process waits in the start gate; zero: it does not
}

// ledSlots are GOT slots that lead to stubs or hooks.
type ledSlots []shm.Slot

// have says whether a slot is among them.
func (l *ledSlots) have(address uint64) bool {
	return slices.ContainsFunc(*l, func(s shm.Slot) bool { return s.Address == address })
}

// slotWriterOf is for a process with DMLib.
func slotWriterOf(process Process) slotWriter {
	memory := process.Memory()
	return slotWriter{memory: memory, app: memory.App(), process: process}
}

// inGate is the writer of a process that waits in the start gate until the deadline of ctx,
// if it is held.
func (w slotWriter) inGate(ctx context.Context, held bool) slotWriter {
	if held {
		w.until = time.Now().Add(safePointTimeout)
		if deadline, ok := ctx.Deadline(); ok {
			w.until = deadline
		}
	}
	return w
}

// held says whether nothing runs in the process yet.
func (w slotWriter) held() bool { return time.Now().Before(w.until) }

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
	_, err = w.memory.Run(ctx, shm.Command{Op: shm.OpStub, At: shm.AtHooks, Args: [8]uint64{uint64(stub), function}})
	return err
}

func (w slotWriter) stubAddress(stub int) uint64 {
	return w.app.StubEntry + uint64(stub*w.app.StubSize)
}

// lost says that a slot does not lead to its stub or hook any more: its library was
// unloaded, and the address may mean anything by now, or the loader bound it
// anew.
func (w slotWriter) lost(s shm.Slot) bool {
	now, err := w.load(s.Address)
	if errors.Is(err, proc.ErrPermission) {
		return false // cannot be told
	}
	return err != nil || now != s.To
}

// lead makes slots lead to their stubs or hooks and returns those that do, with what
// they held before. The first that cannot be led ends it, unless its object was unloaded:
// nobody calls through it any more.
func (w slotWriter) lead(ctx context.Context, slots []shm.Slot) ([]shm.Slot, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return shm.EachSlot(slots, func(s *shm.Slot) (bool, error) {
		err := w.leadOne(ctx, s)
		if errors.Is(err, unix.ESTALE) || errors.Is(err, unix.EFAULT) {
			return false, nil
		}
		if err != nil {
			cancel(err) // which the others then return
		}
		return err == nil, err
	})
}

// leadOne makes one slot lead to its stub or hook and notes what it held.
func (w slotWriter) leadOne(ctx context.Context, s *shm.Slot) (err error) {
	if !w.held() {
		return w.memory.LeadSlot(ctx, s, w.load)
	}
	if !s.Origin.Holds(func(at uint64, into []byte) error { return proc.Read(w.process, at, into) }, s.Bias) {
		return unix.ESTALE // another object has taken its place: the word may mean anything
	}
	if s.Old, err = w.load(s.Address); err != nil {
		return err
	}
	return w.store(s.Address, s.To)
}

// restore puts the old contents back and returns the slots where it could not, with the
// first error. One that cannot be restored is no reason to leave the others; one that
// leads elsewhere by now is no longer ours.
func (w slotWriter) restore(ctx context.Context, slots []shm.Slot) ([]shm.Slot, error) {
	return shm.EachSlot(slots, func(s *shm.Slot) (bool, error) {
		var err error
		if w.held() {
			err = w.store(s.Address, s.Old)
		} else {
			err = w.memory.GiveBackSlot(ctx, *s)
		}
		return err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EFAULT), err
	})
}

func (w slotWriter) store(address, value uint64) error {
	content := binary.LittleEndian.AppendUint64(nil, value)
	return proc.Write(w.process, address, content)
}

func (w slotWriter) load(address uint64) (uint64, error) { return proc.ReadWord(w.process, address) }
