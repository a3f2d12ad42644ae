// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/arch/x86/x86asm"
)

// Wide decides whether a whole jump of JumpBytes bytes can be written over the
// entry of a function, which leads wherever there is room. It can be written
// only while no thread is within the bytes, see [Site.Within], and nothing may
// lead there: that is what around is asked for. entry is an address as the file
// numbers them, code what stands there, at most SiteBytes and no more than the
// function has; bias is added for the process. The site's Landing is still to
// be given by [Site.To]. Errors wrap [ErrUnpatchable].
func Wide(entry uint64, code []byte, around Surroundings, bias uint64) (Site, error) {
	if bytes.HasPrefix(code, signalReturn) {
		return Site{}, fmt.Errorf("%w: it is the return from signal handlers", ErrUnpatchable)
	}
	if bytes.HasPrefix(code, endbr64) {
		code = code[len(endbr64):]
		entry += uint64(len(endbr64))
	}
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
	return s, around.nothingLeads(entry, entry+JumpBytes)
}

// WideExit is Wide for an exit: the jump takes the place of the padding behind it,
// or of the instructions before it as well, as many as are needed.
func WideExit(exit Exit, around Surroundings, bias uint64) (Site, error) {
	if s, ok := paddedExit(exit, around, bias); ok {
		return s, nil
	}
	run, err := around.endingAt(exit.Address)
	if err != nil {
		return Site{}, err
	}
	s := Site{leaves: always, wide: true}
	if exit.Conditional {
		s.leaves = perhaps
	}
	length, first := 0, len(run)
	for length < JumpBytes {
		if first--; first < 0 {
			return Site{}, fmt.Errorf("%w: there are %d bytes before the end: too few for a whole jump", ErrUnpatchable, length)
		}
		length += run[first].length
	}
	run = run[first:]
	if len(run) > 1 && exit.Conditional {
		return Site{}, fmt.Errorf("%w: a conditional jump of %d bytes: too few for a whole one", ErrUnpatchable, run[len(run)-1].length)
	}
	s.Address = run[0].at + bias
	if err := s.onOnePage(); err != nil {
		return Site{}, err
	}
	for _, r := range run {
		i, err := decodeMovable(r.at+bias, r.code)
		if err != nil {
			return Site{}, err
		}
		if len(s.displaced) > 0 && s.last().ends() {
			return Site{}, fmt.Errorf("%w: %s before the end", ErrUnpatchable, s.last().Inst)
		}
		s.displaced = append(s.displaced, i)
		s.Original = append(s.Original, i.code...)
	}
	return s, around.nothingLeads(run[0].at, max(run[0].at+JumpBytes, exit.Address+1))
}

// paddedExit is WideExit for an exit that is never passed, and behind which nothing
// is executed: compilers fill up with no-operations to where the next function or a
// loop begins, linkers with traps.
func paddedExit(exit Exit, around Surroundings, bias uint64) (Site, bool) {
	code := around.at(exit.Address)
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
	return s, s.onOnePage() == nil && around.nothingLeads(exit.Address, exit.Address+JumpBytes) == nil
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

// onOnePage refuses a jump on two pages: a controller that is killed while the
// kernel copies it might leave one half.
func (s Site) onOnePage() error {
	if s.Address%PageBytes > PageBytes-JumpBytes {
		return fmt.Errorf("%w: the whole jump at %#x would lie on two pages", ErrUnpatchable, s.Address)
	}
	return nil
}

// ends says whether something else than the next instruction may follow.
func (i instruction) ends() bool { return i.leaves() || i.branches() }

// Wide says whether a whole jump is written.
func (s Site) Wide() bool { return s.wide }

// To gives a wide site its landing.
func (s Site) To(landing uint64) (Site, error) {
	s.Landing = landing
	_, err := Jump(s.Address, landing)
	return s, err
}

// jump writes the whole jump over the first bytes of code. To has seen that it
// reaches.
func (s Site) jump(code []byte) {
	jump, err := Jump(s.Address, s.Landing)
	if err == nil {
		copy(code, jump)
	}
}

func (s Site) recognizeWide(code []byte) (Site, bool) {
	landing, ok := JumpTarget(s.Address, code)
	if !ok || bytes.Equal(code, s.Original) || !bytes.Equal(code[JumpBytes:], s.Original[JumpBytes:]) {
		return Site{}, false
	}
	s.Landing = landing
	return s, true
}

// before are the displaced instructions that an exit comes after.
func (s Site) before() []instruction {
	if s.leaves == never {
		return nil
	}
	return s.displaced[:len(s.displaced)-1]
}

// A landing of a wide site has a slot of a window to itself:
//
//	 0  jmp *pointer
//	 8  pointer
//	16  address of the patched code
//	24  magic
const (
	landingPointer = 8
	landingAddress = 16
	landingMagic   = 24
	landingSize    = 32
)

var magicOfLanding = []byte("ATLANDW1")

// OwnLanding makes what stands at the Landing of a wide site, and says where its
// pointer is, which still leads nowhere.
func (s Site) OwnLanding() (code []byte, pointer uint64, err error) {
	pointer = s.Landing + landingPointer
	jump, err := LandingCode(s.Landing, pointer)
	code = make([]byte, landingSize)
	copy(code, jump)
	binary.LittleEndian.PutUint64(code[landingAddress:], s.Address)
	copy(code[landingMagic:], magicOfLanding)
	return code, pointer, err
}

// LandingIn finds the landing of a wide site in memory that begins at an
// address.
func (s Site) LandingIn(start uint64, memory []byte) (landing uint64, ok bool) {
	first := int(-start % SlotBytes)
	for i := first; i+landingSize <= len(memory); i += SlotBytes {
		slot := memory[i:]
		if bytes.Equal(slot[landingMagic:landingSize], magicOfLanding) && binary.LittleEndian.Uint64(slot[landingAddress:]) == s.Address {
			return start + uint64(i), true
		}
	}
	return 0, false
}
