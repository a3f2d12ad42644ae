// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Calling returns code for [Execute] that calls the function at an address,
// which takes no parameters, and returns what it returns.
func Calling(function uint64) []byte {
	code := binary.LittleEndian.AppendUint64([]byte{0x48, 0xb8}, function) // movabs $function,%rax
	return append(code, 0xff, 0xe0)                                        // jmp *%rax
}

// suits says whether a stopped thread stands where it may do the job.
func (p *plan) suits(t tracee, regs *unix.PtraceRegs) bool {
	if p.also != nil && !p.also(max(int64(regs.Orig_rax), -1), regs.Rdi) {
		return false
	}
	if !p.anywhere {
		return p.safe(t, regs)
	}
	return regs.Cs == userCode && (finished(regs) || inCall(regs)) && !t.inSequence(p.read)
}

// finished says whether a thread is in no system call, or one that is not to be
// restarted: then it has its result already. A thread that does little else is
// hardly ever found between two.
func finished(regs *unix.PtraceRegs) bool {
	result := int64(regs.Rax)
	return int64(regs.Orig_rax) < 0 || result < restartFirst || result > restartLast
}
