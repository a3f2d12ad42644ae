// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

const (
	// redZone is what a function may use below its stack pointer (System V ABI).
	redZone = 128
	// usualVectors is more than the vector registers of most processors take,
	// bytes; the true size is known only when a thread has stopped.
	usualVectors = 4 << 10
	// mostHandled bounds how far up a stack signal handlers are looked for, bytes.
	mostHandled = 256 << 10
	// mostPassed is how many threads are let go for another one to be found that
	// can have a lifeline.
	mostPassed = 4
)

// lifeline brings the borrowed thread back if the tracer is killed while the
// thread is at a system call instruction of libc: a signal frame where the
// kernel itself would put one, below the red zone of the thread's stack. The
// instruction is followed by a return, which goes to libc's signal restorer, and
// that to the frame. What lay there is put back: nobody owns it, but old frames
// are not to be taken for new ones.
type lifeline struct {
	at      uint64 // address of its first byte; 0: there is none
	pointer uint64 // the stack pointer to make the system call with
	was     []byte // what lay there
}

// knowStack has it known where a thread's stack is; to be called before the
// thread is stopped.
func (p *plan) knowStack(tid int) {
	if !p.stacks.threads[tid] {
		p.stacks = newStacks(p.pid)
	}
}

// lifelineAt is where one of so many bytes may be; 0: nowhere. There must be
// certainly stack, no alternate one that lies on it, and enough of it.
func (p *plan) lifelineAt(tid int, regs *unix.PtraceRegs, size uint64) uint64 {
	stack := p.stacks.of(p.pid, tid, regs.Rsp, regs.Fs_base)
	if !p.ground.returning || p.ground.restorer == 0 || stack.end == 0 || regs.Rsp-stack.start < redZone+size+alignment {
		return 0
	}
	if p.inHandler(span{regs.Rsp, stack.end}) {
		return 0
	}
	return (regs.Rsp - redZone - size) &^ (alignment - 1)
}

// inHandler says whether a signal handler is at work on a piece of stack, or
// may be.
func (p *plan) inHandler(s span) bool {
	words := make([]byte, min(s.end-s.start, mostHandled)&^7)
	if len(words) == 0 {
		return false
	}
	words = words[:p.readSome(s.start, words)]
	for i := 0; i < len(words); i += 8 {
		if binary.LittleEndian.Uint64(words[i:]) == p.ground.restorer {
			return true
		}
	}
	return len(words) == 0
}

// passOver says whether to try another thread first: this one would be lost if
// the tracer were killed. Each is passed over once, and few are.
func (p *plan) passOver(tid int, regs *unix.PtraceRegs) bool {
	if p.thread != 0 || p.passed[tid] || len(p.passed) >= mostPassed || p.lifelineAt(tid, regs, usualVectors) != 0 {
		return false
	}
	p.passed[tid] = true
	return true
}

// secure writes the lifeline, if there is a place for it. The thread is as it
// was still.
func (c *conversation) secure() {
	content := &region{data: make([]byte, alignment)} // its last word is where to return to
	content.frame = content.reserve(frameBytes)
	content.vectors = content.reserve(len(c.saved.extra) + vectorEnd)
	at := c.lifelineAt(c.tid, &c.saved.regs, uint64(len(content.data)))
	if at == 0 {
		return
	}
	const back = alignment - 8
	content.word(back, c.ground.restorer)
	content.fillFrame(at+uint64(content.vectors), c.saved)
	was := make([]byte, len(content.data))
	if err := c.process.Read(at, was); err != nil {
		return
	}
	if err := c.process.Write(at, content.data); err != nil {
		return // no memory is left; what was written is below the stack
	}
	c.lifeline = lifeline{at: at, pointer: at + back, was: was}
}

// unsecure takes the lifeline away; the thread has its registers back.
func (c *conversation) unsecure() {
	if c.lifeline.at != 0 {
		_ = c.process.Write(c.lifeline.at, c.lifeline.was) // below the stack: not missed
	}
}
