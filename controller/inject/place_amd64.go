// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

const (
	// nearStack is how much of a stack is searched for frames of the
	// allocator and the loader, bytes. They call out of themselves only to
	// wait, so their frame is next to that of the system call; further up,
	// holes in the frames of others are full of stale addresses. So is the near
	// part of a thread that has allocated and then reads: see outside.
	nearStack = 1 << 10
	// maxStack is how much is searched for interrupted frames.
	maxStack = 1 << 20
	// frameRip is where a signal frame keeps the place that was interrupted,
	// from the handler's return address on.
	frameRip = 8 + frameContext + 16*8
)

// safe says whether a stopped thread could call dlopen where it stands.
func (p *plan) safe(t tracee, regs *unix.PtraceRegs) bool {
	switch {
	case regs.Cs != userCode || p.ground.held(regs.Rip):
		return false
	case int64(regs.Orig_rax) >= 0 && !inCall(regs), p.ground.libc.has(regs.Rip) && !inCall(regs):
		return false
	case t.inSequence(p.read) || p.ownsLock(t.inner):
		return false
	case regs.Orig_rax == unix.SYS_FUTEX && (waitsOnOwnFrame(regs) || p.changesIDs()):
		return false
	}
	near := uint64(nearStack)
	if inCall(regs) && p.ground.waitsOutside(int64(regs.Orig_rax)) {
		near = 0
	}
	return p.stackClear(regs.Rsp, near)
}

// waitsOutside says whether a thread in a system call is certainly not in an
// allocator nor in the loader.
func (g *ground) waitsOutside(call int64) bool {
	return traits[call]&outside != 0 || traits[call]&sleeping != 0 && !g.foreign
}

// userCode is the code segment of 64-bit programs.
const userCode = 0x33

func (p *plan) read(address uint64, into []byte) error { return p.process.Read(address, into) }

// ownsLock says whether the thread holds one of the loader's locks: these are
// mutexes that keep their owner's id, as the process numbers it, and nothing else
// in the loader's variables looks like one. It does while a constructor runs, or
// a callback of dl_iterate_phdr.
func (p *plan) ownsLock(tid int) bool {
	own := uint32(tid)
	variables := make([]byte, p.ground.loader.end-p.ground.loader.start)
	if p.read(p.ground.loader.start, variables) != nil {
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

// Signals of glibc's own, which a program cannot block: signalSetID is by which each
// thread changes its user and group ids (SIGSETXID).
const (
	signalCancel unix.Signal = 32
	signalSetID  unix.Signal = 33
)

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
func (p *plan) changesIDs() bool {
	tids, err := procid.Threads(p.pid)
	return err != nil || slices.ContainsFunc(tids, func(tid int) bool {
		s, err := procid.ReadThread(p.pid, tid)
		return err == nil && (s.Pending.Has(signalSetID) || s.Blocked.Has(signalSetID) && !s.Blocked.Has(signalCancel))
	})
}

// stackClear searches a stack, from its top on: its first near bytes for
// words that return into code which may hold locks, and all of it for signal
// frames whose handler interrupted such code. The end of a stack is where
// nothing is mapped; beyond the frames of a thread its descriptor or the
// environment is searched too, which does no harm.
func (p *plan) stackClear(top, near uint64) bool {
	const first, next = 16 << 10, 256 << 10
	buffer := make([]byte, first)
	for at := top &^ 7; at < top+maxStack; {
		n := p.readSome(at, buffer)
		if n == 0 {
			return at > top
		}
		if !p.wordsClear(top+near, at, buffer[:n]) {
			return false
		}
		if n < len(buffer) {
			return true
		}
		at += uint64(n)
		buffer = make([]byte, next)
	}
	return true
}

// wordsClear searches one piece that lies at an address; what is near ends at
// another.
func (p *plan) wordsClear(near, at uint64, piece []byte) bool {
	for i := 0; i+8 <= len(piece); i += 8 {
		word := binary.LittleEndian.Uint64(piece[i:])
		place := at + uint64(i)
		if place < near && p.ground.returns(word) ||
			word == p.ground.restorer && word != 0 && p.interruptedHeld(place) {
			return false
		}
	}
	return true
}

// readSome reads up to where nothing is mapped, and returns how many bytes.
func (p *plan) readSome(at uint64, into []byte) int {
	return p.process.ReadSome(at, into) &^ 7
}

// interruptedHeld says whether the handler whose signal frame begins at an
// address interrupted code that may hold locks, libc's own among them.
func (p *plan) interruptedHeld(frame uint64) bool {
	word := make([]byte, 8)
	if p.read(frame+frameRip, word) != nil {
		return false
	}
	rip := binary.LittleEndian.Uint64(word)
	return p.ground.held(rip) || p.ground.libc.has(rip)
}
