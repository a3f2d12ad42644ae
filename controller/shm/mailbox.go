// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/dmlib/abi"
)

const (
	firstPoll = 50 * time.Microsecond
	lastPoll  = 2 * time.Millisecond
)

// pendingCommand is the controller's own memory of one mailbox slot.
type pendingCommand struct {
	number uint64 // ticket's; 0: empty
	at     Family // asked to look for it
	point  int    // like [Command.Point]
	// abandoned: nobody polls for it any more, but a thread holds it.
	abandoned bool
}

// Mailbox takes commands to the application and results back. Its methods may be called
// at any time by several goroutines.
type Mailbox struct {
	*mapping

	mu       sync.Mutex // guards what follows; after life
	pending  [MailboxSize]pendingCommand
	waiting  [PointCount]int // pending commands that may run at each local point
	reserved uint64          // last ticket number handed out
}

// Post hands a command over and asks the families' hooks to look at the
// mailbox. The ticket stays valid until Poll has returned a result or Cancel
// true. Safe to call at any time.
func (b *Mailbox) Post(c Command) (Ticket, error) {
	if err := c.validate(); err != nil {
		return Ticket{}, fmt.Errorf("command for the application: %w", err)
	}
	b.life.RLock()
	defer b.life.RUnlock()
	if b.data == nil {
		return Ticket{}, ErrClosed
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	slot := b.emptyMailboxSlot()
	if slot < 0 {
		return Ticket{}, ErrMailboxFull
	}
	b.reserved++
	b.pending[slot] = pendingCommand{number: b.reserved, at: c.At, point: c.Point}
	b.writeCommand(slot, c)
	b.ask(&b.pending[slot])
	store32(b.data, b.commandAt(slot)+abi.CommandStateAt, abi.CmdPosted)
	return Ticket{slot: slot, number: b.reserved}, nil
}

// emptyMailboxSlot finds a slot, if need be one whose command nobody waits for
// any more. The caller holds mu.
func (b *Mailbox) emptyMailboxSlot() int {
	for i := range b.pending {
		p := &b.pending[i]
		if p.abandoned && b.isOver(i) {
			b.release(i)
		}
		if p.number == 0 {
			return i
		}
	}
	return -1
}

// isOver says whether no thread has an abandoned command any more: it is done, or was given
// back, and is taken back here. The caller holds mu.
func (b *Mailbox) isOver(slot int) bool {
	state := b.commandAt(slot) + abi.CommandStateAt
	return load32(b.data, state) == abi.CmdDone || cas32(b.data, state, abi.CmdPosted, abi.CmdEmpty)
}

// writeCommand fills in the slot, but for the state.
func (b *Mailbox) writeCommand(slot int, c Command) {
	at := b.commandAt(slot)
	store32(b.data, at+abi.CommandOpAt, uint32(c.Op))
	store32(b.data, at+abi.CommandAtAt, uint32(c.At))
	store32(b.data, at+abi.CommandThreadAt, uint32(c.Thread))
	store32(b.data, at+abi.CommandPointAt, uint32(c.Point))
	for i, arg := range c.Args {
		store64(b.data, at+abi.CommandArgsAt+8*i, arg)
	}
	store64(b.data, at+abi.CommandResultAt, 0)
	store32(b.data, at+abi.CommandErrorAt, 0)
}

// Poll asks for the result of a command. It is false while there is none, and
// for a ticket that is no longer valid.
func (b *Mailbox) Poll(t Ticket) (Result, bool) {
	b.life.RLock()
	defer b.life.RUnlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.valid(t) || load32(b.data, b.commandAt(t.slot)+abi.CommandStateAt) != abi.CmdDone {
		return Result{}, false
	}
	at := b.commandAt(t.slot)
	r := Result{
		Value:  load64(b.data, at+abi.CommandResultAt),
		Errno:  unix.Errno(load32(b.data, at+abi.CommandErrorAt)),
		Thread: int(int32(load32(b.data, at+abi.CommandDoneByAt))),
		Local:  int(min(load64(b.data, at+abi.CommandDonePointAt), PointCount)),
	}
	b.release(t.slot)
	return r, true
}

// wait polls until there is a result, ctx ends or the memory is closed.
func (b *Mailbox) wait(ctx context.Context, t Ticket) (Result, bool) {
	timer := time.NewTimer(firstPoll)
	defer timer.Stop()
	for pause := firstPoll; ; pause = min(2*pause, lastPoll) {
		if r, done := b.Poll(t); done || b.isClosed() {
			return r, done
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return b.Poll(t)
		case <-timer.C:
		}
	}
}

// posted says whether a command waits for a thread.
func (b *Mailbox) posted(t Ticket) bool {
	b.life.RLock()
	defer b.life.RUnlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.valid(t) && load32(b.data, b.commandAt(t.slot)+abi.CommandStateAt) == abi.CmdPosted
}

// Cancel takes a command back. It is false if a thread has claimed it already
// (its result will come), and for a ticket that is no longer valid.
func (b *Mailbox) Cancel(t Ticket) bool {
	b.life.RLock()
	defer b.life.RUnlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.valid(t) {
		return false
	}
	if !cas32(b.data, b.commandAt(t.slot)+abi.CommandStateAt, abi.CmdPosted, abi.CmdEmpty) {
		return false
	}
	b.release(t.slot)
	return true
}

// abandon stops waiting for a command that a thread holds; its slot is used
// again once it is done, or given back. No other thread has to look for it: a
// mailbox bit that stayed would cost every hook a look, for as long as the call
// lasts. Nor may one execute it when it was given back: it is for no hook from
// now on, which a thread that claims it looks at again.
func (b *Mailbox) abandon(t Ticket) {
	b.life.RLock()
	defer b.life.RUnlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := &b.pending[t.slot]; b.valid(t) && !p.abandoned {
		b.unask(p)
		store32(b.data, b.commandAt(t.slot)+abi.CommandAtAt, 0)
		p.at, p.abandoned = 0, true
	}
}

// valid tells whether the ticket is valid. The caller holds life and mu.
func (b *Mailbox) valid(t Ticket) bool {
	return b.data != nil && t.number != 0 && b.pending[t.slot].number == t.number
}

// release empties a mailbox slot. The caller holds mu.
func (b *Mailbox) release(slot int) {
	store32(b.data, b.commandAt(slot)+abi.CommandStateAt, abi.CmdEmpty)
	b.unask(&b.pending[slot])
	b.pending[slot] = pendingCommand{}
}

// ask sets the mailbox bit wherever the command may run. The caller holds
// mu.
func (b *Mailbox) ask(p *pendingCommand) {
	p.points(func(i int) {
		if b.waiting[i]++; b.waiting[i] == 1 {
			or32(b.data, b.controlAt(i)+abi.PointControlWordAt, abi.CtlMailbox)
		}
	})
}

// unask clears the bit where no other command is pending. The caller holds
// mu.
func (b *Mailbox) unask(p *pendingCommand) {
	p.points(func(i int) {
		if b.waiting[i]--; b.waiting[i] == 0 {
			and32(b.data, b.controlAt(i)+abi.PointControlWordAt, ^uint32(abi.CtlMailbox))
		}
	})
}

// points calls f with the local points that the command looks for.
func (p *pendingCommand) points(f func(index int)) {
	if p.at != 0 && p.point != 0 {
		f(p.point - 1)
		return
	}
	localPoints(p.at, f)
}
