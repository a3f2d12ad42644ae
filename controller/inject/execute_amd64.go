// SPDX-License-Identifier: Apache-2.0

package inject

import "golang.org/x/sys/unix"

// suits says whether a stopped thread stands where it may do the job.
func (p *plan) suits(t tracee, regs *unix.PtraceRegs) bool {
	if !p.anywhere {
		return p.safe(t, regs)
	}
	return regs.Cs == userCode && (int64(regs.Orig_rax) < 0 || inCall(regs)) && !t.inSequence(p.read)
}
