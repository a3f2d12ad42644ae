// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"math"

	"golang.org/x/arch/x86/x86asm"
)

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

// jumps says whether the instruction begins with the opcode that a patch
// writes.
func (s Site) jumps() bool { return s.Original[0] == JumpOpcode }

// Patched is Original with the jump in it.
func (s Site) Patched() []byte {
	code := bytes.Clone(s.Original)
	if s.wide {
		if jump, err := Jump(s.Address, s.Landing); err == nil { // To has seen that it reaches
			copy(code, jump)
		}
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

// To gives a wide site its landing.
func (s Site) To(landing uint64) (Site, error) {
	s.Landing = landing
	_, err := Jump(s.Address, landing)
	return s, err
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

func (s Site) recognizeWide(code []byte) (Site, bool) {
	landing, ok := JumpTarget(s.Address, code)
	if !ok || bytes.Equal(code, s.Original) || !bytes.Equal(code[JumpBytes:], s.Original[JumpBytes:]) {
		return Site{}, false
	}
	s.Landing = landing
	return s, true
}

// Wide says whether a whole jump is written.
func (s Site) Wide() bool { return s.wide }

// Relocate makes code for the address at that does what the displaced
// instructions do in their place and goes on behind them.
func (s Site) Relocate(at uint64) ([]byte, error) {
	var moved []byte
	for _, i := range s.displaced {
		code, err := i.move(at + uint64(len(moved)))
		if err != nil {
			return nil, err
		}
		moved = append(moved, code...)
	}
	if last := s.last(); last.Op == x86asm.JMP && last.branches() {
		return moved, nil
	}
	back, err := Jump(at+uint64(len(moved)), s.Continue())
	return append(moved, back...), err
}

// Continue is where the function goes on after what is displaced.
func (s Site) Continue() uint64 { return s.last().end() }

// last is the displaced instruction that the function leaves by, if it leaves.
func (s Site) last() instruction { return s.displaced[len(s.displaced)-1] }

// before are the displaced instructions that an exit comes after.
func (s Site) before() []instruction {
	if s.leaves == never {
		return nil
	}
	return s.displaced[:len(s.displaced)-1]
}

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
