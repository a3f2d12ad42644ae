// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/procid"
)

const (
	// nearStack is how much of a stack is searched for frames of the
	// allocator and the loader, bytes. They call out of themselves only to
	// wait, so their frame is next to that of the system call.
	nearStack = 1 << 10
	// How libc makes a system call: it loads the number, most often right before.
	loadNumberBytes, syscallBytes = 5, 2
	// maxStack is how much is searched for interrupted frames.
	maxStack = 1 << 20
)

// safe says whether a stopped thread could call dlopen where it stands.
func (g *ground) safe(t *tracer.Thread, regs *unix.PtraceRegs) bool {
	switch {
	case regs.Cs != tracer.UserCode || g.held(regs.Rip):
		return false
	case int64(regs.Orig_rax) >= 0 && !tracer.InCall(regs), g.libc.Has(regs.Rip) && !tracer.InCall(regs):
		return false
	case t.InSequence(g.process.Read) || g.ownsLock(t.Inner):
		return false
	case regs.Orig_rax == unix.SYS_FUTEX && (waitsOnOwnFrame(regs) || g.changesIDs()):
		return false
	}
	outside := tracer.InCall(regs) && g.waitsOutside(int64(regs.Orig_rax))
	return (outside || !g.calledNear(regs)) && g.stackClear(regs.Rsp)
}

// waitsOutside says whether a thread in a system call is certainly not in an
// allocator nor in the loader.
func (g *ground) waitsOutside(call int64) bool {
	return tracer.TraitsOf(call)&tracer.Outside != 0 || tracer.TraitsOf(call)&tracer.Sleeping != 0 && !g.foreign
}

// ownsLock says whether the thread holds one of the loader's locks: these are
// mutexes that keep their owner's id, as the process numbers it, and nothing else
// in the loader's variables looks like one. It does while a constructor runs, or
// a callback of dl_iterate_phdr.
func (g *ground) ownsLock(tid int) bool {
	own := uint32(tid)
	variables := make([]byte, g.loader.End-g.loader.Start)
	if g.process.Read(g.loader.Start, variables) != nil {
		return true
	}
	for i := 8; i+4 <= len(variables); i += 4 {
		owner := binary.LittleEndian.Uint32(variables[i:])
		locked := binary.LittleEndian.Uint32(variables[i-8:])
		if owner == own && (locked == 1 || locked == 2) {
			return true
		}
	}
	return false
}

// signalCancel is the other signal of glibc's own that a program cannot block.
const signalCancel unix.Signal = 32

// setIDFrames is more than glibc's frames have between setuid(2) and the system call in
// which its caller waits.
const setIDFrames = 1024 // bytes

// waitsOnOwnFrame says whether a thread waits on a word of a frame right above. In
// setuid(2) and its like the others count down such a word, and when the last one has,
// nothing else shows that the thread, which still has to return, holds the lock.
func waitsOnOwnFrame(regs *unix.PtraceRegs) bool {
	return regs.Rdi-regs.Rsp < setIDFrames
}

// changesIDs says whether setuid(2) or one of its like may be at work: a thread has its
// signal still to take, or is in its handler, which blocks that signal alone; workers of
// the kernel block both. The thread that called setuid waits for the others and holds
// the lock of the thread stacks, which has no owner's id. Nothing changes that while
// the thread is stopped.
func (g *ground) changesIDs() bool {
	tids, _, err := procid.AllThreads(g.process.PID()) // what sets ids waits for living ones
	return err != nil || slices.ContainsFunc(tids, func(tid int) bool {
		s, err := procid.ReadThread(g.process.PID(), tid)
		return err == nil && (s.Pending.Has(tracer.SignalSetID) || s.Blocked.Has(tracer.SignalSetID) && !s.Blocked.Has(signalCancel))
	})
}

// calledNear says whether code that may hold locks may be among a thread's callers, as
// near as it would be. Where no word of the stack there is an address behind a call in
// such code, it is not. Where one is it may be stale: frames have holes, in which
// addresses stay of what was called before. A program that allocates much and then
// computes has them nearly always. So the frames are followed, which tells a caller from
// what only looks like one; where that cannot be done the word counts.
func (g *ground) calledNear(regs *unix.PtraceRegs) bool {
	memory := make([]byte, nearStack)
	n := g.process.ReadSome(regs.Rsp&^7, memory)
	for _, word := range words(memory[:n]) {
		if g.returns(word) {
			return !g.frames.callers(frameOf(regs), regs.Rsp+nearStack, func(call uint64) bool { return !g.held(call) })
		}
	}
	return false
}

// stackClear searches a thread's stacks, from its pointer on, for signal frames whose
// handler interrupted code that may hold locks.
func (g *ground) stackClear(pointer uint64) bool {
	clear := true
	eachStack(pointer, func(top uint64) (end uint64, left []uint64) {
		const first, next = 16 << 10, 256 << 10
		buffer := make([]byte, first)
		for end = top; clear && end < top+maxStack; buffer = make([]byte, next) {
			n := g.process.ReadSome(end, buffer) &^ 7
			for i, word := range words(buffer[:n]) {
				if word != g.gadget.Restorer || word == 0 {
					continue
				}
				clear = clear && !g.interruptedHeld(end+uint64(i))
				if stack, err := g.process.ReadWord(end + uint64(i) + tracer.InterruptedStackAt); err == nil {
					left = append(left, stack)
				}
			}
			clear = clear && (n > 0 || end != pointer&^7) // a stack that was left may be gone
			end += uint64(n)
			if n < len(buffer) {
				break
			}
		}
		return end, left
	})
	return clear
}

// maxStacks bounds how many stacks of a thread are searched.
const maxStacks = 8

// eachStack calls search with the top of a thread's stack, and of those that signal
// handlers with a stack of their own have left. search returns where it has ended, which is
// where nothing is mapped or after maxStack bytes, and the stack pointers that the signal
// frames keep which it has found. Beyond the frames of a thread its descriptor or the
// environment is searched too, which does no harm.
func eachStack(pointer uint64, search func(top uint64) (end uint64, left []uint64)) {
	var searched []tracer.Span
	for todo := []uint64{pointer}; len(todo) > 0 && len(searched) < maxStacks; todo = todo[1:] {
		top := todo[0] &^ 7
		if slices.ContainsFunc(searched, func(s tracer.Span) bool { return s.Has(top) }) {
			continue
		}
		end, left := search(top)
		searched = append(searched, tracer.Span{Start: top, End: end})
		todo = append(todo, left...)
	}
}

// words are those of memory, and how many bytes are before each.
func words(memory []byte) iter.Seq2[int, uint64] {
	return func(yield func(int, uint64) bool) {
		for i := 0; i+8 <= len(memory); i += 8 {
			if !yield(i, binary.LittleEndian.Uint64(memory[i:])) {
				return
			}
		}
	}
}

// interruptedHeld says whether the handler whose signal frame begins at an
// address interrupted code that may hold locks, libc's own among them; but not where it
// waited in a system call in which a thread may be borrowed as well. Processes are
// forked in such handlers (PostgreSQL's, up to 15), and never return from them.
func (g *ground) interruptedHeld(frame uint64) bool {
	rip, err := g.process.ReadWord(frame + tracer.InterruptedAt)
	if err != nil {
		return false
	}
	if g.held(rip) {
		return true
	}
	return g.libc.Has(rip) && !g.interruptedWait(frame, rip)
}

// interruptedWait says whether a signal interrupted a system call, at or behind whose
// instruction the handler is to return, that neither an allocator nor the loader
// waits in. Which one it is stands before that instruction.
func (g *ground) interruptedWait(frame, rip uint64) bool {
	result, err := g.process.ReadWord(frame + tracer.InterruptedResultAt)
	if err != nil {
		return false
	}
	if int64(result) != -int64(unix.EINTR) {
		rip += syscallBytes // it is to be made again
	}
	code := make([]byte, loadNumberBytes+syscallBytes)
	if g.process.Read(rip-uint64(len(code)), code) != nil || !bytes.HasSuffix(code, []byte{0x0f, 0x05}) {
		return false
	}
	load := code[:loadNumberBytes]
	switch {
	case bytes.HasSuffix(load, []byte{0x31, 0xc0}): // xor eax, eax
		return g.waitsOutside(unix.SYS_READ)
	case load[0] == 0xb8: // mov eax, NUMBER
		return g.waitsOutside(int64(binary.LittleEndian.Uint32(load[1:])))
	}
	return false
}
