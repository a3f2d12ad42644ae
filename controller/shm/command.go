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
	// OpStub binds stub Args[0] to the function Args[1], for good.
	OpStub Op = abi.OpStub
	// OpGOT writes the word Args[2] to Args[0], only where the old value is Args[4].
	// Args[3] is 1. Args[5] not zero makes the page writable. See [Command.Of].
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

// attendable says whether a command may be executed by a thread that was
// stopped anywhere: it takes no lock of the program's.
func (c Command) attendable() bool { return c.Op != OpCall && c.Thread == 0 && c.Point == 0 }

func (c Command) validate() error {
	switch {
	case c.Op > OpMap:
		return fmt.Errorf("unknown operation %d", c.Op)
	case c.At == 0 || c.At&^atAny != 0:
		return fmt.Errorf("safe-point families %#x: want some of %#x", uint32(c.At), uint32(atAny))
	case c.Thread < 0:
		return fmt.Errorf("thread %d", c.Thread)
	case c.Point < 0 || c.Point > PointCount:
		return fmt.Errorf("local point %d: want 0 to %d", c.Point-1, PointCount-1)
	}
	return nil
}

// Result is what the application answered. All of it is untrusted.
type Result struct {
	// Value is the result of a call, the old value of a slot.
	Value uint64
	// Errno is 0 if the command was done.
	Errno unix.Errno
	// Thread executed it, in the process's own numbering.
	Thread int
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
