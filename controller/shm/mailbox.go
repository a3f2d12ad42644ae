// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/objfile"
)

var (
	// ErrMailboxFull means that MailboxSize commands are pending already.
	ErrMailboxFull = errors.New("mailbox is full")
	// ErrNoSafePoint means that no thread came by a place where the command
	// may run, and that the command was taken back: it will not run.
	ErrNoSafePoint = errors.New("no safe point reached")
	// ErrConfined means that the application has put itself under a seccomp
	// filter since DMLib came in, which may kill it for what a command needs.
	ErrConfined = errors.New("the program has put itself under a seccomp filter since DMLib came in")
	// ErrOutcomeUnknown means that a thread began to execute the command and
	// had not finished when the time was over.
	ErrOutcomeUnknown = errors.New("command began and has not finished")
)

// Op is what a command does.
type Op uint32

// The commands; see dmlib_abi.h for their arguments.
const (
	// OpNop proves that safe points are reached.
	OpNop Op = abi.OpNOP
	// OpCall calls the function Args[0] with Args[1] to Args[6].
	OpCall Op = abi.OpCall
	// OpLoad reads Args[1] bytes at Args[0].
	OpLoad Op = abi.OpLoad
	// OpStore writes Args[2], of Args[1] bytes, to Args[0]; if Args[3] is not
	// zero only where the old value is Args[4].
	OpStore Op = abi.OpStore
	// OpStub binds stub Args[0] to the function Args[1], for good.
	OpStub Op = abi.OpStub
	// OpGOT is OpStore of 8 bytes; Args[5] not zero makes the page writable. See
	// [Command.Of].
	OpGOT Op = abi.OpGOT
	// OpMap maps Args[1] bytes at Args[0], readable and executable, where
	// nothing is mapped.
	OpMap Op = abi.OpMap
)

// Command is one command for the application.
type Command struct {
	// Op is what to do.
	Op Op
	// At says where it may be done; at least one family.
	At Family
	// Thread restricts it to one thread id as the process sees it. 0: any.
	Thread int
	// Point restricts it to one local point that At includes, whose bits in
	// [Command.At] the caller need not know: 0 is any, else 1 plus its index.
	// There OpCall is permitted also at a patch.
	Point int
	// ID is free for the caller: the journal and logs name the command by it.
	ID uint64
	// Args depend on Op.
	Args [commandArgCount]uint64
}

// Of makes an OpGOT one for the slot that has an origin in an object which is
// loaded at a bias: it ends with [unix.ESTALE] where that is not there any more.
func (c Command) Of(origin objfile.Origin, bias uint64) Command {
	if origin.Relocation != 0 {
		c.Args[1], c.Args[6] = origin.Print, bias+origin.Relocation
		c.Args[7] = uint64(uint32(origin.Symbol)) | uint64(uint32(origin.Name))<<32
	}
	return c
}

func (c Command) validate() error {
	switch {
	case c.Op > OpMap:
		return fmt.Errorf("command %d: unknown operation %d", c.ID, c.Op)
	case c.At == 0 || c.At&^atAny != 0:
		return fmt.Errorf("command %d: safe-point families %#x: want some of %#x", c.ID, uint32(c.At), uint32(atAny))
	case c.Thread < 0:
		return fmt.Errorf("command %d: thread %d", c.ID, c.Thread)
	case c.Point < 0 || c.Point > PointCount:
		return fmt.Errorf("command %d: local point %d: want 0 to %d", c.ID, c.Point-1, PointCount-1)
	}
	return nil
}

// Result is what the application answered. All of it is untrusted.
type Result struct {
	// Value is the result of a call or load, the old value of a store.
	Value uint64
	// Errno is 0 if the command was done.
	Errno unix.Errno
	// Thread executed it, in the process's own numbering.
	Thread int
	// Ticks is the counter's reading when it was done; Scale.Time converts.
	Ticks uint64
	// Local is the local index of the point at which it ran; PointCount if it
	// ran at none.
	Local int
	// Stopped is how long a thread was stopped for it, by the controller's own
	// account; 0 if it came by.
	Stopped time.Duration
}

// Ticket names a pending command. Tickets are never used twice.
type Ticket struct {
	slot   int
	number uint64
}

// pendingCommand is the controller's own memory of one mailbox slot.
type pendingCommand struct {
	number uint64 // ticket's; 0: empty
	at     Family // asked to look for it
	point  int    // like [Command.Point]
	// abandoned: nobody polls for it any more, but a thread holds it.
	abandoned bool
}

// Post hands a command over and asks the families' hooks to look at the
// mailbox. The ticket stays valid until Poll has returned a result or Cancel
// true. Safe to call at any time.
func (m *Memory) Post(c Command) (Ticket, error) {
	if err := c.validate(); err != nil {
		return Ticket{}, err
	}
	m.life.RLock()
	defer m.life.RUnlock()
	if m.data == nil {
		return Ticket{}, ErrClosed
	}
	m.control.Lock()
	defer m.control.Unlock()
	slot := m.emptyMailboxSlot()
	if slot < 0 {
		return Ticket{}, fmt.Errorf("command %d: %w", c.ID, ErrMailboxFull)
	}
	m.reserved++
	m.mailbox[slot] = pendingCommand{number: m.reserved, at: c.At, point: c.Point}
	m.writeCommand(slot, c)
	m.ask(&m.mailbox[slot])
	store32(m.data, m.commandAt(slot)+abi.CommandStateAt, abi.CmdPosted)
	return Ticket{slot: slot, number: m.reserved}, nil
}

// emptyMailboxSlot finds a slot, if need be one whose command nobody waits for
// any more. The caller holds control.
func (m *Memory) emptyMailboxSlot() int {
	for i := range m.mailbox {
		p := &m.mailbox[i]
		if p.abandoned && load32(m.data, m.commandAt(i)+abi.CommandStateAt) == abi.CmdDone {
			m.release(i)
		}
		if p.number == 0 {
			return i
		}
	}
	return -1
}

// writeCommand fills in the slot, but for the state.
func (m *Memory) writeCommand(slot int, c Command) {
	at := m.commandAt(slot)
	store32(m.data, at+abi.CommandOpAt, uint32(c.Op))
	store32(m.data, at+abi.CommandAtAt, uint32(c.At))
	store32(m.data, at+abi.CommandThreadAt, uint32(c.Thread))
	store32(m.data, at+abi.CommandPointAt, uint32(c.Point))
	store64(m.data, at+abi.CommandIDAt, c.ID)
	for i, arg := range c.Args {
		store64(m.data, at+abi.CommandArgsAt+8*i, arg)
	}
	store64(m.data, at+abi.CommandResultAt, 0)
	store32(m.data, at+abi.CommandErrorAt, 0)
}

// Poll asks for the result of a command. It is false while there is none, and
// for a ticket that is no longer valid.
func (m *Memory) Poll(t Ticket) (Result, bool) {
	m.life.RLock()
	defer m.life.RUnlock()
	m.control.Lock()
	defer m.control.Unlock()
	if !m.pending(t) || load32(m.data, m.commandAt(t.slot)+abi.CommandStateAt) != abi.CmdDone {
		return Result{}, false
	}
	at := m.commandAt(t.slot)
	r := Result{
		Value:  load64(m.data, at+abi.CommandResultAt),
		Errno:  unix.Errno(load32(m.data, at+abi.CommandErrorAt)),
		Thread: int(int32(load32(m.data, at+abi.CommandDoneByAt))),
		Ticks:  load64(m.data, at+abi.CommandDoneAtAt),
		Local:  int(min(load64(m.data, at+abi.CommandDonePointAt), PointCount)),
	}
	m.release(t.slot)
	return r, true
}

// Cancel takes a command back. It is false if a thread has claimed it already
// (its result will come), and for a ticket that is no longer valid.
func (m *Memory) Cancel(t Ticket) bool {
	m.life.RLock()
	defer m.life.RUnlock()
	m.control.Lock()
	defer m.control.Unlock()
	if !m.pending(t) {
		return false
	}
	if !cas32(m.data, m.commandAt(t.slot)+abi.CommandStateAt, abi.CmdPosted, abi.CmdEmpty) {
		return false
	}
	m.release(t.slot)
	return true
}

// abandon stops waiting for a command that a thread holds; its slot is used
// again once it is done. No other thread has to look for it: a mailbox bit
// that stayed would cost every hook a look, for as long as the call lasts.
func (m *Memory) abandon(t Ticket) {
	m.life.RLock()
	defer m.life.RUnlock()
	m.control.Lock()
	defer m.control.Unlock()
	if p := &m.mailbox[t.slot]; m.pending(t) && !p.abandoned {
		m.unask(p)
		p.at, p.abandoned = 0, true
	}
}

// pending tells whether the ticket is valid. The caller holds life and control.
func (m *Memory) pending(t Ticket) bool {
	return m.data != nil && t.number != 0 && m.mailbox[t.slot].number == t.number
}

// release empties a mailbox slot. The caller holds control.
func (m *Memory) release(slot int) {
	store32(m.data, m.commandAt(slot)+abi.CommandStateAt, abi.CmdEmpty)
	m.unask(&m.mailbox[slot])
	m.mailbox[slot] = pendingCommand{}
}

// ask sets the mailbox bit wherever the command may run. The caller holds
// control.
func (m *Memory) ask(p *pendingCommand) {
	p.points(func(i int) {
		if m.waiting[i]++; m.waiting[i] == 1 {
			or32(m.data, m.controlAt(i)+abi.PointControlWordAt, abi.CtlMailbox)
		}
	})
}

// unask clears the bit where no other command is pending. The caller holds
// control.
func (m *Memory) unask(p *pendingCommand) {
	p.points(func(i int) {
		if m.waiting[i]--; m.waiting[i] == 0 {
			and32(m.data, m.controlAt(i)+abi.PointControlWordAt, ^uint32(abi.CtlMailbox))
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
