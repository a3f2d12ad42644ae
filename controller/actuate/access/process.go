// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"sync"

	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// Way is a way into a process.
type Way string

// Ways in; docs/reference/actions.md says which actions try which, in which
// order.
const (
	WayMemory  Way = "memory write"
	WayMailbox Way = "DMLib at a safe point"
	WayStopped Way = "ptrace at a safe place"
	WayEntry   Way = "entry patch"
	WayGOT     Way = "GOT slots"
	WaySystem  Way = "system call"
)

// Description is a way in words.
type Description struct {
	Way         Way
	Description string
}

// Ways describes every way.
func Ways() []Description {
	return []Description{
		{WayMemory, "the memory of the process is written from outside (/proc/PID/mem). Nothing stops."},
		{WayMailbox, "a thread of the process does it at one of DMLib's hooks. Nothing stops; the process must have been started by `attune run` or be attached to."},
		{WayStopped, "one thread is stopped by ptrace(2) where it could itself have called the C library, does it, and goes on as if nothing had been; the others run. Code that takes no lock may interrupt anything. Nothing of Attune stays in the process."},
		{WayEntry, "one byte of a function makes it begin with a jump to code that does what is asked for, and then what the function does. Every call is changed, direct ones inside the object included, but not where the compiler has built the function into a caller. The memory for that code is mapped by DMLib, or else by a stopped thread; it stays when the byte has gone back, for a thread may be in it. Where that byte would make the jump lead to memory in use, or another patch is too near, a whole jump of five bytes is written while all threads are stopped, some milliseconds at most, and none is within the bytes; so it goes back."},
		{WayGOT, "the slots through which all objects call a function of another one are led elsewhere, each in one go, by DMLib or else by a stopped thread."},
		{WaySystem, "a system call on the process, its threads or duplicates of its descriptors, from outside."},
	}
}

// Process is what an action needs of the process that it acts on.
type Process interface {
	// Locker is held while something is changed or undone in the process, for seconds
	// where it comes by no safe point.
	sync.Locker
	// TryLock is Lock for whoever does not wait; false: somebody else has the lock.
	TryLock() bool
	// PID in the controller's pid namespace.
	PID() int
	// Identity that the journal keeps.
	Identity() procid.Identity
	// Alive reports whether the process still runs this image.
	Alive() bool
	proc.Holder
	// Images returns the objects mapped at present.
	Images() ([]objfile.Image, error)
	// Mailbox is DMLib's in that process; nil without DMLib.
	Mailbox() Mailbox
	// Sites owns the patched functions of the process.
	Sites() *sites.Sites
}

// Mailbox has DMLib do things inside a process.
type Mailbox interface {
	// Call makes a call at the next safe point that suits it. It returns the
	// result and says where it happened, e.g. "malloc hook, thread 4711". An
	// error that wraps [shm.ErrNoSafePoint] means that the call was withdrawn
	// and will not be made.
	Call(ctx context.Context, call Call) (result uint64, where string, err error)
	// Map maps memory that is readable and executable; unix.EEXIST where
	// something is mapped.
	Map(ctx context.Context, start, size uint64) error
	// Store makes a GOT slot hold another value in one go; unix.EAGAIN if it
	// does not hold the old one, unix.ESTALE if it is none any more, unix.EBUSY
	// if the loader stays at work on it.
	Store(ctx context.Context, slot Word, old, value uint64) error
}

// Call is one call of a function inside a process.
type Call struct {
	// Function is its address.
	Function uint64
	// Arguments are up to six integers.
	Arguments []uint64
	// Families of hooks at which the call may be made; empty: those at which
	// the thread could call the allocator.
	Families []string
	// Thread that makes the call, as the process sees its id; 0: any.
	Thread int
	// Entry is a function at whose next entry the call is made, instead of at a
	// hook of the families; nil: none. One whose entry cannot be patched is
	// refused.
	Entry *objfile.Resolved
}

// ErrRefused wraps every reason for not even trying.
var ErrRefused = errors.New("refused")

// OwnerOf is the effective user of a process. The owner of its files in /proc
// is root where the process cannot be dumped.
func OwnerOf(pid int) (int, error) {
	status, err := procid.ReadStatus(pid)
	return int(status.Users.Effective), err
}
