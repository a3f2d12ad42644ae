// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
)

// gotChange leads the calls of a function that go through dynamic linking to
// another one.
type gotChange struct {
	process Process
	old     objfile.Resolved
	target  uint64
}

// serve makes a plan one of GOT slots; because says why nothing better serves.
func (g gotChange) serve(p *plan, because error) error {
	words, err := g.words()
	if err != nil {
		return err
	}
	p.way, p.undo, p.prepare = WayGOT, undoWords(words), nil
	p.partial = fmt.Sprintf("calls inside %s, through pointers taken before, and of objects that are loaded later are not changed (%v)",
		g.old.Image.Name(), because)
	p.read = noValue
	p.run = func(ctx context.Context) (done, error) {
		for _, w := range words {
			if err := exchangeSlot(ctx, g.process, w, w.Old, w.New); err != nil {
				return done{}, err
			}
		}
		return now(nil)
	}
	return nil
}

// words are the slots of all objects that the loader fills with the function.
func (g gotChange) words() (words []Word, err error) {
	if !g.old.Symbol.Dynamic {
		return nil, fmt.Errorf("%w: %s is not exported: nobody calls it through a GOT", ErrRefused, g.old.Symbol.Name)
	}
	images, err := g.process.Images()
	if err != nil {
		return nil, err
	}
	for _, image := range images {
		if image.Matches("libattune-dm*") {
			continue
		}
		of, err := g.slotsOf(images, image)
		if err != nil {
			return nil, err
		}
		words = append(words, of...)
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("%w: no object of the process calls %s through its GOT", ErrRefused, g.old.Symbol.Name)
	}
	return words, nil
}

// slotsOf lists those of one object. One that the loader has not come to is as those
// of objects that are loaded later, and one that leads to another object's function
// of that name is none of this function's.
func (g gotChange) slotsOf(images []objfile.Image, image objfile.Image) (words []Word, err error) {
	slots, err := image.GOTSlots(g.old.Symbol.Name)
	if err != nil {
		return nil, nil //nolint:nilerr // its calls stay as they are
	}
	for _, slot := range slots {
		w, err := wordAt(g.process, image, image.Address(slot.VirtualAddress), "GOT slot of "+slot.Symbol, 8, unsigned(g.target))
		if err != nil {
			return nil, err
		}
		w.ReadOnly, w.Slot, w.Origin = slot.RELRO, true, slot.Origin
		now := binary.LittleEndian.Uint64(w.Old)
		if _, another := objfile.Elsewhere(images, slot.Symbol, g.old.Address, now); another || !slot.Origin.Relocated(now, image.Bias) {
			continue
		}
		words = append(words, w)
	}
	return words, nil
}

const (
	// busyTries is how often DMLib is asked while the loader is at work, after
	// busyPause each.
	busyTries = 4
	busyPause = 5 * time.Millisecond
)

// exchangeSlot makes a slot hold something else in one go, while threads jump
// through it: the kernel promises no whole words for writes from outside.
func exchangeSlot(ctx context.Context, process Process, w Word, from, to []byte) error {
	if mailbox := process.Mailbox(); mailbox != nil {
		ctx, cancel := context.WithTimeout(ctx, DefaultSafePointTimeout)
		defer cancel()
		if err := storeSlot(ctx, mailbox, w, from, to); err == nil || !next(err) {
			return slotError(w, err)
		}
	}
	if err := settled(process.PID(), w); err != nil {
		return slotError(w, err)
	}
	previous, _, err := execute(ctx, process, exchangeCode(w, from, to), inject.ExecuteOptions{Anywhere: true})
	if err == nil && previous != binary.LittleEndian.Uint64(from) {
		err = unix.EAGAIN
	}
	return slotError(w, err)
}

func storeSlot(ctx context.Context, mailbox Mailbox, w Word, from, to []byte) error {
	err := error(unix.EBUSY)
	for try := 0; try < busyTries && errors.Is(err, unix.EBUSY); try++ {
		if try > 0 {
			time.Sleep(busyPause)
		}
		err = mailbox.Store(ctx, w, binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(to))
	}
	return err
}

// settled says why a slot must not be written by a stopped thread: it is none any
// more, or the loader is at work on it and has made its page writable.
func settled(pid int, w Word) error {
	read := func(address uint64, into []byte) error { return procmem.Read(pid, address, into) }
	if !w.Origin.Holds(read, w.ImageBias) {
		return unix.ESTALE
	}
	if !w.ReadOnly {
		return nil
	}
	mappings, err := objfile.AllMappings(pid)
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

// putSlotBack is putBack for a GOT slot.
func putSlotBack(pid int, w Word) error {
	now := make([]byte, 8)
	if err := procmem.Read(pid, w.Address, now); err != nil {
		return err
	}
	switch {
	case bytes.Equal(now, w.Old):
		return nil
	case !bytes.Equal(now, w.New):
		return slotError(w, unix.EAGAIN)
	}
	process, err := identityOf(pid)
	if err != nil {
		return err
	}
	if err = exchangeSlot(context.Background(), process, w, w.New, w.Old); errors.Is(err, unix.ESTALE) {
		return nil // with its object
	}
	return err
}
