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
}

// polling are calls that return EINTR when they are only looked at.
var polling = map[int64]bool{
	unix.SYS_EPOLL_WAIT: true, unix.SYS_EPOLL_PWAIT: true, unix.SYS_EPOLL_PWAIT2: true,
}

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

// maxStack bounds how much of a stack is searched, bytes.
const maxStack = 1 << 20

// safe says whether a stopped thread could call dlopen where it stands.
func (p *plan) safe(t tracee, regs *unix.PtraceRegs) bool {
	if regs.Cs != 0x33 || p.ground.held(regs.Rip) || t.inSequence(p.read) {
		return false
	}
	if int64(regs.Orig_rax) >= 0 && !inCall(regs) {
		return false
	}
	if p.ground.libc.has(regs.Rip) && !inCall(regs) {
		return false
	}
	return p.stackClear(regs.Rsp)
}

func (p *plan) read(address uint64, into []byte) error { return procmem.Read(p.pid, address, into) }

// stackClear searches the stack, from the page of its top on, for words that
// return into code that may hold locks. The end of a stack is where nothing is
// mapped; beyond the frames of a thread its descriptor or the environment is
// searched too, which does no harm.
func (p *plan) stackClear(top uint64) bool {
	const piece = 4096
	buffer := make([]byte, piece)
	for at := top &^ 7; at < top+maxStack; {
		size := piece - at%piece
		if p.read(at, buffer[:size]) != nil {
			return at > top
		}
		for i := uint64(0); i+8 <= size; i += 8 {
			if p.ground.returns(binary.LittleEndian.Uint64(buffer[i:])) {
				return false
			}
		}
		at += size
	}
	return true
}
