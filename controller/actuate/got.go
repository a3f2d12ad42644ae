// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

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
	p.way, p.words, p.patched, p.undo, p.prepare = WayGOT, words, nil, nil, nil
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
		of, err := g.slotsOf(image)
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

func (g gotChange) slotsOf(image objfile.Image) (words []Word, err error) {
	slots, err := image.GOTSlots(g.old.Symbol.Name)
	if err != nil {
		return nil, nil //nolint:nilerr // its calls stay as they are
	}
	for _, slot := range slots {
		w, err := wordAt(g.process, image, image.Address(slot.VirtualAddress), "GOT slot of "+slot.Symbol, 8, unsigned(g.target))
		if err != nil {
			return nil, err
		}
		w.ReadOnly, w.Slot = slot.RELRO, true
		words = append(words, w)
	}
	return words, nil
}

// exchangeSlot makes a slot hold something else in one go, while threads jump
// through it: the kernel promises no whole words for writes from outside.
func exchangeSlot(ctx context.Context, process Process, w Word, from, to []byte) error {
	if mailbox := process.Mailbox(); mailbox != nil {
		ctx, cancel := context.WithTimeout(ctx, DefaultSafePointTimeout)
		defer cancel()
		err := mailbox.Store(ctx, w.Address, binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint64(to), w.ReadOnly)
		if err == nil || errors.Is(err, unix.EAGAIN) {
			return slotError(w, err)
		}
	}
	previous, _, err := execute(ctx, process, exchangeCode(w, from, to), inject.ExecuteOptions{Anywhere: true})
	if err == nil && previous != binary.LittleEndian.Uint64(from) {
		err = slotError(w, unix.EAGAIN)
	}
	return err
}

// slotError says what it means that a slot held something else.
func slotError(w Word, err error) error {
	if errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("%s: %w", w.What, ErrChangedByOthers)
	}
	return err
}

// putSlotBack is putBack for a GOT slot.
func putSlotBack(pid int, w Word) error {
	now := make([]byte, 8)
	if err := procmem.Read(pid, w.Address, now); err != nil {
		return err
	}
	if string(now) == string(w.Old) {
		return nil
	}
	process, err := identityOf(pid)
	if err != nil {
		return err
	}
	return exchangeSlot(context.Background(), process, w, w.New, w.Old)
}
