// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procmem"
)

// blocking are system calls that a thread may be taken out of and put back
// into: they hold nothing, and the kernel restarts them.
var blocking = map[int64]bool{
	unix.SYS_READ: true, unix.SYS_WRITE: true, unix.SYS_READV: true, unix.SYS_WRITEV: true,
	unix.SYS_POLL: true, unix.SYS_PPOLL: true, unix.SYS_SELECT: true, unix.SYS_PSELECT6: true,
	unix.SYS_EPOLL_WAIT: true, unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true,
	unix.SYS_NANOSLEEP: true, unix.SYS_CLOCK_NANOSLEEP: true, unix.SYS_PAUSE: true,
	unix.SYS_ACCEPT: true, unix.SYS_ACCEPT4: true, unix.SYS_CONNECT: true,
	unix.SYS_RECVFROM: true, unix.SYS_RECVMSG: true, unix.SYS_SENDTO: true, unix.SYS_SENDMSG: true,
	unix.SYS_WAIT4: true, unix.SYS_WAITID: true, unix.SYS_FUTEX: true, unix.SYS_FLOCK: true,
	unix.SYS_RT_SIGSUSPEND: true, unix.SYS_SCHED_YIELD: true,
	// One of them that has a timeout, since it was interrupted before.
	unix.SYS_RESTART_SYSCALL: true,
}

// polling are calls that return EINTR when they are only looked at.
var polling = map[int64]bool{
	unix.SYS_EPOLL_WAIT: true, unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true,
}

// outside are blocking calls that neither an allocator nor the loader waits in:
// these wait for locks (futex, and others' by yielding and sleeping), and print.
// The loader's callbacks may, under locks whose owner is asked for.
var outside = map[int64]bool{
	unix.SYS_READ: true, unix.SYS_READV: true, unix.SYS_RECVFROM: true, unix.SYS_RECVMSG: true,
	unix.SYS_POLL: true, unix.SYS_PPOLL: true, unix.SYS_SELECT: true, unix.SYS_PSELECT6: true,
	unix.SYS_EPOLL_WAIT: true, unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true,
	unix.SYS_ACCEPT: true, unix.SYS_ACCEPT4: true, unix.SYS_PAUSE: true, unix.SYS_RT_SIGSUSPEND: true,
	unix.SYS_WAIT4: true, unix.SYS_WAITID: true,
}

// sleeping are calls that glibc's allocator does not wait in either; others do,
// for their locks.
var sleeping = map[int64]bool{unix.SYS_NANOSLEEP: true, unix.SYS_CLOCK_NANOSLEEP: true}

// The kernel's codes for a call that is to be restarted; a program never sees
// them.
const (
	restartFirst = -516
	restartLast  = -512
	restartBlock = -516
	syscallBytes = 2
	noSyscall    = ^uint64(0)
)

// inCall says whether the thread stands in a system call that can go on
// afterwards.
func inCall(regs *unix.PtraceRegs) bool {
	number, result := int64(regs.Orig_rax), int64(regs.Rax)
	if number < 0 || !blocking[number] {
		return false
	}
	return result >= restartFirst && result <= restartLast || result == -int64(unix.EINTR) && polling[number]
}

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
	return outside[call] || sleeping[call] && !g.foreign
}

// userCode is the code segment of 64-bit programs.
const userCode = 0x33

func (p *plan) read(address uint64, into []byte) error { return procmem.Read(p.pid, address, into) }

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
	var pages []unix.RemoteIovec
	for done := 0; done < len(into); {
		start := at + uint64(done)
		n := min(len(into)-done, int(pageBytes-start%pageBytes))
		pages = append(pages, unix.RemoteIovec{Base: uintptr(start), Len: n})
		done += n
	}
	local := []unix.Iovec{{Base: &into[0], Len: uint64(len(into))}}
	n, err := unix.ProcessVMReadv(p.pid, local, pages, 0)
	if err != nil {
		return 0
	}
	return n &^ 7
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
