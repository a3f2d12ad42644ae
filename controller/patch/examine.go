// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"fmt"

	"github.com/attune-hpc/attune/controller/patch/flow"
)

// SiteBytes is how much of a function [Examine] likes to see: a landing pad, the
// longest instruction and the bytes that become a displacement. Less is enough
// where the function's section ends.
const SiteBytes = 24

// signalReturn is the C library's trampoline out of signal handlers (mov
// $15,%rax; syscall). Unwinders know it by its bytes.
var signalReturn = []byte{0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}

// Examine decides whether the function at entry can be patched. code is its
// code as it lies there, at most SiteBytes of it. Errors wrap
// [ErrUnpatchable].
func Examine(entry uint64, code []byte) (Site, error) {
	pad, err := behindPad(code)
	if err != nil {
		return Site{}, err
	}
	return examine(entry+uint64(pad), code[pad:], never)
}

// behindPad is how far behind its landing pad a function is patched, if it may be.
func behindPad(code []byte) (length int, err error) {
	if bytes.HasPrefix(code, signalReturn) {
		return 0, fmt.Errorf("%w: it is the return from signal handlers", ErrUnpatchable)
	}
	return flow.LandingPad(code), nil
}

// ExamineExit is Examine for an instruction with which a function ends, as
// [flow.Exits] finds it.
func ExamineExit(at uint64, code []byte, exit flow.Exit) (Site, error) {
	return examine(at, code, leavingBy(exit))
}

func leavingBy(exit flow.Exit) leaving {
	if exit.Conditional {
		return perhaps
	}
	return always
}

func examine(at uint64, code []byte, leaves leaving) (Site, error) {
	s := Site{Address: at, leaves: leaves, to: JumpOpcode}
	if len(code) < JumpBytes {
		return Site{}, fmt.Errorf("%w: %d bytes of code at the end of a section", ErrUnpatchable, len(code))
	}
	inst, err := decodeMovable(at, code)
	if err != nil {
		return Site{}, err
	}
	s.displaced = []instruction{inst}
	s.Original = bytes.Clone(code[:max(inst.Len, JumpBytes)])
	if !s.jumps() {
		s.Landing, _ = JumpTarget(s.Address, s.Patched())
	}
	return s, nil
}
