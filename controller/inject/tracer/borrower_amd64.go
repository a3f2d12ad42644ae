// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// BorrowerOptions says what a borrowed thread is to do.
type BorrowerOptions struct {
	// Gadget is what it makes system calls by.
	Gadget Gadget
	// Needs are the system calls that it makes, which its filters must allow.
	Needs []Need
	// Died ends the tracer's thread somewhere in the middle; for tests, else nil.
	Died func(where string) bool
}

// Cost tells which thread was borrowed, and what threads went through for that.
type Cost struct {
	// Thread is the thread of the program that was borrowed.
	Thread int
	// Attempts is how many times a thread was stopped until one was at a safe
	// place.
	Attempts int
	// Stopped is how long Thread did not do its own work, from the last look
	// that found it running. No other thread is ever stopped, but for a look, or for
	// being watched no longer (Disturbed).
	Stopped time.Duration
	// Disturbed is how long threads were stopped in vain, altogether.
	Disturbed time.Duration
}

// Borrower borrows threads of one process: has them execute something else, and puts
// them back. What takes time is done before a thread is stopped, when it is made.
type Borrower struct {
	process   *proc.Handle
	options   BorrowerOptions
	lifelines lifelines
	confined  bool          // the process has seccomp filters
	filters   map[int]error // by thread: why its filters stand against it, nil for nothing
	area      []byte        // for the vector registers of the borrowed thread
	ends      componentEnds // of what is in the area
}

// NewBorrower makes one for a process in some state. It borrows one thread at a time.
func NewBorrower(process *proc.Handle, s procid.Status, o BorrowerOptions) *Borrower {
	return &Borrower{
		process: process, options: o, lifelines: lifelines{process: process, gadget: o.Gadget},
		confined: s.Seccomp != 0, filters: make(map[int]error), area: make([]byte, maxXstate), ends: newComponentEnds(),
	}
}

// Borrowable says whether a thread that stands could execute code that takes no lock and
// calls nothing: it is in no system call, or in one that it can be taken out of and put
// back into, and in no restartable sequence.
func (b *Borrower) Borrowable(t *Thread, regs *unix.PtraceRegs) bool {
	return regs.Cs == UserCode && (finished(regs) || InCall(regs)) && !t.InSequence(b.process.Read)
}

// mayHaveLifeline says whether there is a place for a thread's lifeline, however many of
// the processor's vector registers the kernel keeps.
func (b *Borrower) mayHaveLifeline(tid int, regs *unix.PtraceRegs) bool {
	return b.lifelines.at(tid, regs, uint64(vectorsAt+b.ends.bytes(allComponents)+vectorEnd)) != 0
}

// MayCall says why a thread, which stands, may not make certain system calls, or those
// that it starts.
func (b *Borrower) MayCall(t *Thread, needs []Need) error {
	if !b.confined {
		return nil
	}
	return t.filtered(needs)
}

// permits says why a thread, which is stopped, may not make the system calls that it
// would have to. The answer holds until it gets another filter, which no thread loses
// again.
func (b *Borrower) permits(t *Thread) error {
	if !b.confined {
		return nil
	}
	if _, known := b.filters[t.ID]; !known {
		b.filters[t.ID] = t.filtered(b.options.Needs)
	}
	return b.filters[t.ID]
}

// refused says whether a thread is known to be refused by its filters.
func (b *Borrower) refused(tid int) bool { return b.filters[tid] != nil }

// refusal says why some thread is; nil: none is known to be.
func (b *Borrower) refusal() error {
	for _, refusal := range b.filters {
		if refusal != nil {
			return refusal
		}
	}
	return nil
}
