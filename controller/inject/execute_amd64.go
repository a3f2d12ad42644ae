// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// codeOffset is where it stands in its page, behind the stub.
const codeOffset = codeBytes - MaxCode

// execution is the job of calling code.
type execution struct {
	code  []byte
	value uint64
}

func (e *execution) region(vectorBytes int) *region {
	r := newRegion(executeStub, executeMarker)
	copy(r.data[codeOffset:], e.code)
	r.complete(vectorBytes)
	r.block = []word{{}, {}, inside(codeOffset), {}, {}, {}, {}, inside(r.frame)}
	return r
}

func (e *execution) outcome(c *conversation, _ *Result) error {
	block := make([]byte, blockEnd)
	if err := c.read(c.base+codeBytes, block); err != nil {
		return err
	}
	if binary.LittleEndian.Uint32(block[blockOutcome:]) != 1 {
		return fmt.Errorf("%w: it did not come to its end", ErrCall)
	}
	e.value = binary.LittleEndian.Uint64(block[blockValue:])
	return nil
}

// suits says whether a stopped thread stands where it may do the job.
func (p *plan) suits(t tracee, regs *unix.PtraceRegs) bool {
	if !p.anywhere {
		return p.safe(t, regs)
	}
	return regs.Cs == userCode && (int64(regs.Orig_rax) < 0 || inCall(regs)) && !t.inSequence(p.read)
}
