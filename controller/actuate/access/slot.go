// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
)

// ExchangeSlot makes a slot hold something else in one go, while threads jump
// through it: the kernel promises no whole words for writes from outside.
func ExchangeSlot(ctx context.Context, process Process, w Word, from, to []byte) error {
	if mailbox := process.Mailbox(); mailbox != nil {
		ctx, cancel := context.WithTimeout(ctx, DefaultSafePointTimeout)
		defer cancel()
		if err := mailbox.Store(ctx, w, binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(to)); err == nil || !next(err) {
			return slotError(w, err)
		}
	}
	if err := settled(process, w); err != nil {
		return slotError(w, err)
	}
	previous, _, err := Execute(ctx, process, exchangeCode(w, from, to), inject.ExecuteOptions{Anywhere: true})
	if err == nil && previous != binary.LittleEndian.Uint64(from) {
		err = unix.EAGAIN
	}
	return slotError(w, err)
}

// settled says why a slot must not be written by a stopped thread: it is none any
// more, or the loader is at work on it and has made its page writable.
func settled(process Process, w Word) error {
	read := func(address uint64, into []byte) error { return proc.Read(process, address, into) }
	if !w.Origin.Holds(read, w.ImageBias) {
		return unix.ESTALE
	}
	if !w.ReadOnly {
		return nil
	}
	mappings, err := objfile.AllMappings(process.PID())
	if err != nil {
		return err
	}
	for _, m := range mappings {
		if w.Address >= m.Start && w.Address < m.End && !m.Write {
			return nil
		}
	}
	return unix.EBUSY
}

// slotError says what it means that a slot could not be changed.
func slotError(w Word, err error) error {
	switch {
	case errors.Is(err, unix.EAGAIN):
		return fmt.Errorf("%s: %w", w.What, ErrChangedByOthers)
	case errors.Is(err, unix.ESTALE):
		return fmt.Errorf("%s: the object has been unloaded: %w", w.What, err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("%s: the loader is at work on it: %w", w.What, err)
	}
	return err
}

// putSlotBack is put for the old content of a GOT slot.
func putSlotBack(process Process, w Word) error {
	err := ExchangeSlot(context.Background(), process, w, w.New, w.Old)
	if errors.Is(err, unix.ESTALE) {
		return nil // with its object
	}
	return err
}
