// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"golang.org/x/arch/x86/x86asm"
)

// ErrUnpatchable wraps every reason why a function cannot be patched.
var ErrUnpatchable = errors.New("code cannot be patched")

const (
	// SiteBytes is how much of a function [Examine] likes to see: a landing
	// pad, the longest instruction and the bytes that become a displacement.
	// Less is enough where the function's section ends.
	SiteBytes = 24
	// JumpBytes is the length of a jump with a 32-bit displacement.
	JumpBytes = 5
	// JumpOpcode is the byte that a patch writes.
	JumpOpcode = 0xe9
)

// endbr64 is where an indirect call must arrive under control-flow
// enforcement; the patch goes behind it.
var endbr64 = []byte{0xf3, 0x0f, 0x1e, 0xfa}

// signalReturn is the C library's trampoline out of signal handlers (mov
// $15,%rax; syscall). Unwinders know it by its bytes.
var signalReturn = []byte{0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05}

// evex begins the instructions of AVX-512, whose operands the decoder does not
// always get right.
const evex = x86asm.Prefix(0x62)

// Site is the place of a patch: an instruction of which one byte is changed so
// that it becomes a jump to the landing, or a few that a whole jump takes the
// place of (a wide site, see [Wide]).
type Site struct {
	// Address of the instruction: the function's entry, or behind its endbr64,
	// or one of the function's exits.
	Address uint64
	// Original is what stands there: the instruction, and at least JumpBytes
	// bytes.
	Original []byte
	// Landing is where the jump leads. Of an instruction that is a jump already
	// it is given by [Site.Land].
	Landing uint64

	// displaced are the instructions that the patch takes the place of: one, or
	// of a wide site all that begin in its first JumpBytes bytes.
	displaced []instruction
	leaves    leaving
	wide      bool
	// changed is the index in Original of the byte that becomes to.
	changed int
	to      byte
}

// leaving says whether an instruction ends the call of its function.
type leaving int

const (
	never   leaving = iota // an entry
	always                 // a return, or a jump to another function
	perhaps                // a conditional jump to another function
)

// Examine decides whether the function at entry can be patched. code is its
// code as it lies there, at most SiteBytes of it. Errors wrap
// [ErrUnpatchable].
func Examine(entry uint64, code []byte) (Site, error) {
	if bytes.HasPrefix(code, signalReturn) {
		return Site{}, fmt.Errorf("%w: it is the return from signal handlers", ErrUnpatchable)
	}
	if bytes.HasPrefix(code, endbr64) {
		code = code[len(endbr64):]
		entry += uint64(len(endbr64))
	}
	return examine(entry, code, never)
}

// ExamineExit is Examine for an instruction with which a function ends, as
// [Exits] finds it.
func ExamineExit(at uint64, code []byte, exit Exit) (Site, error) {
	leaves := always
	if exit.Conditional {
		leaves = perhaps
	}
	return examine(at, code, leaves)
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

// jumps says whether the instruction begins with the opcode that a patch
// writes.
func (s Site) jumps() bool { return s.Original[0] == JumpOpcode }

// Patched is Original with the jump in it.
func (s Site) Patched() []byte {
	code := bytes.Clone(s.Original)
	if s.wide {
		s.jump(code)
		return code
	}
	code[s.changed] = s.to
	return code
}

// Land gives a site whose instruction is a jump a landing where usable returns
// nil, by another byte in the jump's distance: steps of 16 MiB, then of 64 KiB,
// the nearest first. For other sites there is one landing. The error is the
// last one of usable.
func (s Site) Land(usable func(landing uint64) error) (Site, error) {
	if !s.jumps() {
		return s, usable(s.Landing)
	}
	var err error
	for _, s.changed = range []int{JumpBytes - 1, JumpBytes - 2} {
		for step := 1; step <= math.MaxUint8; step++ {
			// +1, -1, +2, -2 ...
			s.to = s.Original[s.changed] + byte(step/2)
			if step%2 == 0 {
				s.to = s.Original[s.changed] - byte(step/2)
			}
			if s.to == s.Original[s.changed] {
				continue
			}
			s.Landing, _ = JumpTarget(s.Address, s.Patched())
			if err = usable(s.Landing); err == nil {
				return s, nil
			}
		}
	}
	return Site{}, err
}

// Recognize returns the site as code, which lies there now, has it patched. It
// is false if code is not patched.
func (s Site) Recognize(code []byte) (Site, bool) {
	if len(code) < len(s.Original) {
		return Site{}, false
	}
	code = code[:len(s.Original)]
	if s.wide {
		return s.recognizeWide(code)
	}
	changes := []int{0}
	if s.jumps() {
		changes = []int{JumpBytes - 1, JumpBytes - 2}
	}
	for _, s.changed = range changes {
		s.to = code[s.changed]
		if s.to != s.Original[s.changed] && bytes.Equal(code, s.Patched()) && code[0] == JumpOpcode {
			s.Landing, _ = JumpTarget(s.Address, code)
			return s, true
		}
	}
	return Site{}, false
}

// Continue is where the function goes on after what is displaced.
func (s Site) Continue() uint64 { return s.last().end() }

// last is the displaced instruction that the function leaves by, if it leaves.
func (s Site) last() instruction { return s.displaced[len(s.displaced)-1] }

// Overlaps says whether patching one of two sites would change the jump of the
// other.
func (s Site) Overlaps(other Site) bool {
	return s.Address < other.behind() && other.Address < s.behind()
}

// behind is the first address of which the patch takes no notice.
func (s Site) behind() uint64 {
	if s.wide {
		return max(s.Continue(), s.Address+JumpBytes)
	}
	return s.Address + JumpBytes
}
