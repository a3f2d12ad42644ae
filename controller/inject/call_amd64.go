// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/proc"
)

// call is a job in a borrowed thread, in memory of its own, and the words by which the
// two sides tell each other how far they are (struct attune_entry).
type call struct {
	*tracer.Borrowed
	process *proc.Handle
	job     *job
	timeout time.Duration
	region  *region
	base    uint64 // of the mapping; 0: there is none
	at      uint64 // of struct attune_entry
	answer  entryAnswer
}

// caller makes calls in threads of a process.
type caller struct {
	process  *proc.Handle
	borrower *tracer.Borrower
	// room is where the mapping is asked for; 0: wherever the kernel likes. It
	// likes to be next to the libraries, where code that maps memory at a given
	// address (for a landing) may want just that place.
	room    uint64
	timeout time.Duration // of one call
}

// open borrows a thread, which stands, and has it map the memory for a job. The caller
// calls end, with the error too, unless the call is nil: then it was not borrowed.
func (r *caller) open(t *tracer.Thread, j *job) (*call, error) {
	b, err := r.borrower.Borrow(t)
	if err != nil {
		return nil, err
	}
	c := &call{Borrowed: b, process: r.process, job: j, timeout: r.timeout}
	if j.calls.create != 0 && (j.calls.single(r.process) || r.borrower.MayCall(t, threadNeeds) != nil) {
		j.calls.create = 0
	}
	c.region = newRegion(j, c.VectorBytes())
	c.base, err = c.Syscall(unix.SYS_MMAP, r.room, c.region.size(), unix.PROT_READ|unix.PROT_EXEC,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, noDescriptor, 0)
	if err != nil {
		return c, fmt.Errorf("map memory in the process: %w", err)
	}
	c.at = c.base + uint64(c.region.entry)
	return c, nil
}

// apart says whether a thread of its own does the work: the mapping is its.
func (c *call) apart() bool { return c.job.calls.create != 0 }

// make has the job done, or a thread started that does it. besides is called while the
// borrowed thread does it itself; may be nil.
func (c *call) make(besides func()) error {
	err := c.attempt(besides)
	if err == nil && c.apart() && c.answer.step == abi.EntryThread {
		c.job.calls.create = 0 // a limit on threads, or a class of scheduling that has none
		err = c.attempt(besides)
	}
	return err
}

// attempt writes the mapping's content and has it executed to its marker.
func (c *call) attempt(besides func()) error {
	c.region.place(c.base, c.job, c.Borrowed)
	if err := c.process.Write(c.base, c.region.data); err != nil {
		return fmt.Errorf("write memory of the process: %w", err)
	}
	if c.apart() {
		besides = nil
	}
	if err := c.Run(c.start(), c.base+c.region.marker(), c.timeout, besides); err != nil {
		return err
	}
	if !c.listen() {
		return ErrInterrupted
	}
	if !c.apart() && !c.answer.started() {
		return fmt.Errorf("%w: its memory could not be made writable", ErrCall)
	}
	return nil
}

// start are the registers that the code begins with, the first of which is mprotect(2).
func (c *call) start() unix.PtraceRegs {
	g := c.Saved()
	g.Rip, g.Rsp, g.Rbx, g.Rbp = c.base+c.region.start(), c.base+c.region.size()-alignment, c.at, 0
	g.Rax, g.Rdi, g.Rsi, g.Rdx = unix.SYS_MPROTECT, c.at, c.region.size()-uint64(c.region.entry), unix.PROT_READ|unix.PROT_WRITE
	return g
}

// end puts the thread back after the call, err, and says whether it is done. The mapping
// is taken away if nobody else needs it. A thread that is lost stays as it is.
func (c *call) end(err error) (done bool, _ error) {
	switch {
	case tracer.Lost(err):
		return false, err
	case err != nil:
		return false, errors.Join(err, c.giveBack(true))
	}
	return true, c.giveBack(!c.apart())
}

// giveBack gives the thread back.
func (c *call) giveBack(unmap bool) (err error) {
	if c.base != 0 && unmap {
		if _, err = c.Syscall(unix.SYS_MUNMAP, c.base, c.region.size()); errors.Is(err, tracer.ErrDied) {
			return err
		}
	}
	return errors.Join(err, c.GiveBack())
}

// listen reads what there is to read. False: the mapping is not there any more,
// as the process has ended or executed another program.
func (c *call) listen() bool {
	block := make([]byte, abi.EntryBytes)
	if c.process.Read(c.at, block) != nil || binary.LittleEndian.Uint64(block[abi.EntryBaseAt:]) != c.base {
		return false
	}
	c.answer = decodeEntry(block)
	return true
}

// say lets the process go on. It may be gone.
func (c *call) say(word uint32) {
	_ = c.process.Write(c.at+abi.EntryGoAt, binary.LittleEndian.AppendUint32(nil, word))
}
