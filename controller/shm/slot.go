// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/objfile"
)

// Slot is a GOT slot that leads somewhere else than the loader had it lead, or is to.
type Slot struct {
	// Address of the slot, To where it leads, Old what it held before.
	Address, To, Old uint64
	// RELRO says that its page is read-only.
	RELRO bool
	// Origin is what makes it a slot of an object that is loaded at Bias.
	Origin objfile.Origin
	Bias   uint64
}

// exchange is the command that has the slot hold another value, if it holds a given one.
func (s Slot) exchange(held, value uint64) Command {
	const compare = 1 // else a DMLib of this ABI may store without comparing
	c := Command{Op: OpGOT, At: AtHooks, Args: [commandArgCount]uint64{0: s.Address, 2: value, 3: compare, 4: held}}
	if s.RELRO {
		c.Args[5] = 1
	}
	return c
}

// ExchangeSlot leads a slot that holds Old to To at the next hook. EAGAIN if it holds
// something else, ESTALE if its object is unloaded.
func (e *Executor) ExchangeSlot(ctx context.Context, s Slot) error {
	_, err := e.RunRetrying(ctx, s.exchange(s.Old, s.To).Of(s.Origin, s.Bias))
	return err
}

// LeadSlot is ExchangeSlot for whatever the slot holds, which it sets in Old. The loader may
// be at work on the object: the slot is read again then, for 100 ms or until ctx ends. One
// that leads to To already is left alone.
func (e *Executor) LeadSlot(ctx context.Context, s *Slot, read func(address uint64) (uint64, error)) (err error) {
	for range busyTries {
		if s.Old, err = read(s.Address); err != nil || s.Old == s.To {
			return err
		}
		if err = unix.EBUSY; s.Origin.Relocated(s.Old, s.Bias) {
			_, err = e.Run(ctx, s.exchange(s.Old, s.To).Of(s.Origin, s.Bias))
		}
		if !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.EAGAIN) || !beat.Pause(ctx, busyPause) {
			break
		}
	}
	return err
}

// GiveBackSlot has a slot that leads to To hold Old again, at the next hook. EAGAIN if it leads somewhere
// else by now. Its object is not looked at: what is there is ours.
func (e *Executor) GiveBackSlot(ctx context.Context, s Slot) error {
	_, err := e.RunRetrying(ctx, s.exchange(s.To, s.Old))
	return err
}

// MailboxShare is how many commands are posted at a time where there are many: the rest
// of the mailbox is left to tuning actions.
const MailboxShare = MailboxSize - 4

// EachSlot calls f for each of some slots, several at a time, and returns those for which
// it says true, with the first error.
func EachSlot(slots []Slot, f func(*Slot) (bool, error)) (chosen []Slot, err error) {
	var group errgroup.Group
	group.SetLimit(MailboxShare)
	choose := make([]bool, len(slots))
	for i := range slots {
		group.Go(func() (err error) {
			choose[i], err = f(&slots[i])
			return err
		})
	}
	err = group.Wait()
	for i, s := range slots {
		if choose[i] {
			chosen = append(chosen, s)
		}
	}
	return chosen, err
}
