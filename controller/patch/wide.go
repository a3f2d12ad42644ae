// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"fmt"

	"golang.org/x/arch/x86/x86asm"

	"github.com/attune-hpc/attune/controller/patch/flow"
)

// Wide decides whether a whole jump of JumpBytes bytes can be written over the
// entry of a function, which leads wherever there is room. It can be written
// only while no thread is within the bytes, and nothing may lead there: that is
// what around is asked for. entry is an address as the file numbers them, code
// what stands there, at most SiteBytes and no more than the function has; bias is
// added for the process. The site's Landing is still to be given by [Site.To].
// Errors wrap [ErrUnpatchable].
func Wide(entry uint64, code []byte, around flow.Surroundings, bias uint64) (Site, error) {
	pad, err := behindPad(code)
	if err != nil {
		return Site{}, err
	}
	code, entry = code[pad:], entry+uint64(pad)
	s := Site{Address: entry + bias, leaves: never, wide: true}
	if err := s.onOnePage(); err != nil {
		return Site{}, err
	}
	length := 0
	for length < JumpBytes {
		if length >= len(code) || length > 0 && s.last().leaves() {
			return Site{}, fmt.Errorf("%w: its first %d bytes are all that is executed in a row: too few for a whole jump", ErrUnpatchable, length)
		}
		i, err := decodeMovable(s.Address+uint64(length), code[length:])
		if err != nil {
			return Site{}, err
		}
		s.displaced = append(s.displaced, i)
		length += i.Len
	}
	s.Original = bytes.Clone(code[:length])
	return s, nothingLeads(around, entry, entry+JumpBytes)
}

// WideExit is Wide for an exit: the jump takes the place of the padding behind it,
// or of the instructions before it as well, as many as are needed.
func WideExit(exit flow.Exit, around flow.Surroundings, bias uint64) (Site, error) {
	if s, ok := paddedExit(exit, around, bias); ok {
		return s, nil
	}
	run, err := around.EndingAt(exit.Address)
	if err != nil {
		return Site{}, fmt.Errorf("%w: %w", ErrUnpatchable, err)
	}
	s := Site{leaves: leavingBy(exit), wide: true}
	length, first := 0, len(run)
	for length < JumpBytes {
		if first--; first < 0 {
			return Site{}, fmt.Errorf("%w: there are %d bytes before the end: too few for a whole jump", ErrUnpatchable, length)
		}
		length += run[first].Len
	}
	run = run[first:]
	if len(run) > 1 && exit.Conditional {
		return Site{}, fmt.Errorf("%w: a conditional jump of %d bytes: too few for a whole one", ErrUnpatchable, run[len(run)-1].Len)
	}
	s.Address = run[0].At + bias
	if err := s.onOnePage(); err != nil {
		return Site{}, err
	}
	for _, r := range run {
		i, err := decodeMovable(r.At+bias, r.Code)
		if err != nil {
			return Site{}, err
		}
		if len(s.displaced) > 0 && s.last().ends() {
			return Site{}, fmt.Errorf("%w: %s before the end", ErrUnpatchable, s.last().Inst)
		}
		s.displaced = append(s.displaced, i)
		s.Original = append(s.Original, i.code...)
	}
	return s, nothingLeads(around, run[0].At, max(run[0].At+JumpBytes, exit.Address+1))
}

// paddedExit is WideExit for an exit that is never passed, and behind which nothing
// is executed: compilers fill up with no-operations to where the next function or a
// loop begins, linkers with traps.
func paddedExit(exit flow.Exit, around flow.Surroundings, bias uint64) (Site, bool) {
	code := around.CodeAt(exit.Address)
	if exit.Conditional || len(code) < JumpBytes {
		return Site{}, false
	}
	i, err := decodeMovable(exit.Address+bias, code)
	if err != nil || !i.leaves() {
		return Site{}, false
	}
	length := i.Len
	for length < JumpBytes {
		n := paddingLength(code[length:])
		if n == 0 {
			return Site{}, false
		}
		length += n
	}
	s := Site{
		Address: exit.Address + bias, Original: bytes.Clone(code[:max(i.Len, JumpBytes)]),
		displaced: []instruction{i}, leaves: always, wide: true,
	}
	return s, s.onOnePage() == nil && nothingLeads(around, exit.Address, exit.Address+JumpBytes) == nil
}

// trap is int3, which linkers fill up with.
const trap = 0xcc

// paddingLength is that of the no-operation or trap that code begins with; 0 if it
// begins with something else.
func paddingLength(code []byte) int {
	if len(code) > 0 && code[0] == trap {
		return 1
	}
	i, err := x86asm.Decode(code, 64)
	if err != nil || i.Op != x86asm.NOP {
		return 0
	}
	return i.Len
}

// nothingLeads refuses a stretch if anything may lead to an address between from
// and to, neither of them included.
func nothingLeads(around flow.Surroundings, from, to uint64) error {
	what, at, err := around.Leads(from, to)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnpatchable, err)
	}
	if what != "" {
		return fmt.Errorf("%w: %s at %#x leads into the bytes of a whole jump at %#x", ErrUnpatchable, what, at, from)
	}
	return nil
}

// onOnePage refuses a jump on two pages: a controller that is killed while the
// kernel copies it might leave one half.
func (s Site) onOnePage() error {
	if s.Address%PageBytes > PageBytes-JumpBytes {
		return fmt.Errorf("%w: the whole jump at %#x would lie on two pages", ErrUnpatchable, s.Address)
	}
	return nil
}
