// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// stacks are the parts of a process that are certain to be a stack, from the
// bottom guard on, and the threads that were there before they were looked for:
// for as long as one of these lives its stack stays where it is.
type stacks struct {
	threads map[int]bool
	main    Span   // of the first thread, as far as it has grown
	guarded []Span // directly above memory that nobody can touch
}

// newStacks reads them. What cannot be read is not there.
func newStacks(pid int) (s stacks) {
	tids, err := procid.Threads(pid)
	if err != nil {
		return stacks{}
	}
	mappings, err := objfile.AllMappings(pid)
	if err != nil {
		return stacks{}
	}
	s.main, s.guarded = stacksIn(mappings)
	s.threads = make(map[int]bool, len(tids))
	for _, tid := range tids {
		s.threads[tid] = true
	}
	return s
}

// stacksIn finds them among the mappings, which are in the order of addresses.
// What is no thread's stack may be among the guarded.
func stacksIn(mappings []objfile.Mapping) (first Span, guarded []Span) {
	var guardEnd uint64
	for _, m := range mappings {
		s := Span{m.Start, m.End}
		switch {
		case m.Path == "[stack]":
			first = s
		case m.Inode != 0 || !m.Private || m.Exec:
		case m.Read && m.Write && s.Start == guardEnd:
			guarded = append(guarded, s)
		case !m.Read && !m.Write:
			guardEnd = s.End
		}
	}
	return first, guarded
}

// of is the stack that a thread of the process is on, from its pointer's mapping
// on, or nothing. The C library keeps the thread's own block, which the thread
// register leads to, at the top of a stack that it has made; a coroutine's, an
// alternate signal stack and one of the program's own making are elsewhere.
func (s stacks) of(pid, tid int, pointer, block uint64) Span {
	if !s.threads[tid] {
		return Span{}
	}
	if tid == pid && s.main.Has(pointer) {
		return s.main
	}
	i, _ := slices.BinarySearchFunc(s.guarded, pointer, func(g Span, at uint64) int {
		if g.End <= at {
			return -1
		}
		return 1
	})
	if i < len(s.guarded) && s.guarded[i].Has(pointer) && pointer < block && block < s.guarded[i].End {
		return Span{s.guarded[i].Start, block}
	}
	return Span{}
}

const (
	// redZone is what a function may use below its stack pointer (System V ABI).
	redZone = 128
	// alignment is that of the vector state in memory.
	alignment = 64
	// mostHandled bounds how far up a stack signal handlers are looked for, bytes.
	mostHandled = 256 << 10
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

// What a lifeline consists of: the word where the system call returns to, the frame, and
// the vector state.
const (
	backAt    = alignment - 8
	frameAt   = alignment
	vectorsAt = frameAt + FrameBytes
)

// lifelines says which threads of a process can have a lifeline.
type lifelines struct {
	process *proc.Handle
	gadget  Gadget
	stacks  stacks
}

// know has it known where a thread's stack is; to be called before the thread is
// stopped.
func (l *lifelines) know(tid int) {
	if !l.stacks.threads[tid] {
		l.stacks = newStacks(l.process.PID())
	}
}

// at is where one of so many bytes may be; 0: nowhere. There must be certainly stack,
// no alternate one that lies on it, and enough of it.
func (l *lifelines) at(tid int, regs *unix.PtraceRegs, size uint64) uint64 {
	stack := l.stacks.of(l.process.PID(), tid, regs.Rsp, regs.Fs_base)
	if !l.gadget.Returning || l.gadget.Restorer == 0 || stack.End == 0 || regs.Rsp-stack.Start < redZone+size+alignment {
		return 0
	}
	if l.inHandler(Span{regs.Rsp, stack.End}) {
		return 0
	}
	return (regs.Rsp - redZone - size) &^ (alignment - 1)
}

// inHandler says whether a signal handler is at work on a piece of stack, or
// may be.
func (l *lifelines) inHandler(s Span) bool {
	words := make([]byte, min(s.End-s.Start, mostHandled)&^7)
	if len(words) == 0 {
		return false
	}
	words = words[:l.process.ReadSome(s.Start, words)&^7]
	for i := 0; i < len(words); i += 8 {
		if binary.LittleEndian.Uint64(words[i:]) == l.gadget.Restorer {
			return true
		}
	}
	return len(words) == 0
}

// secure writes a lifeline for a thread that stands, if there is a place for it.
func (l *lifelines) secure(tid int, s *state) lifeline {
	content := make([]byte, vectorsAt+s.vectorBytes())
	at := l.at(tid, &s.regs, uint64(len(content)))
	if at == 0 {
		return lifeline{}
	}
	binary.LittleEndian.PutUint64(content[backAt:], l.gadget.Restorer)
	s.putFrame(content[frameAt:vectorsAt], content[vectorsAt:], at+vectorsAt)
	was := make([]byte, len(content))
	if err := l.process.Read(at, was); err != nil {
		return lifeline{}
	}
	if err := l.process.Write(at, content); err != nil {
		return lifeline{} // no memory is left; what was written is below the stack
	}
	return lifeline{at: at, pointer: at + backAt, was: was}
}

// unsecure takes a lifeline away; the thread has its registers back.
func (l *lifelines) unsecure(line lifeline) {
	if line.at != 0 {
		_ = l.process.Write(line.at, line.was) // below the stack: not missed
	}
}
