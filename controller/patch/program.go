// SPDX-License-Identifier: Apache-2.0

package patch

// SlotBytes is the alignment of programs and the unit of their size.
const SlotBytes = 256

// MaxProgramBytes is the size of the largest program; actions without end are a
// mistake.
const MaxProgramBytes = 16 * SlotBytes

// Environment is what programs need to know of a process.
type Environment struct {
	// Hook is DMLib's function for entries or for exits.
	Hook uint64
	// ErrnoLocation is the address of __errno_location; 0: the program has no
	// errno.
	ErrnoLocation uint64
	// Spare is the slot of the program's window in which its patch can go on to
	// another window.
	Spare uint64
	// XSave says that the processor has XSAVE.
	XSave bool
}

// Program is what happens where code is patched: first what is measured, then
// the actions, then what the code does anyway.
type Program struct {
	// Numbers of the local points that are measured.
	Numbers []uint32 `json:"numbers,omitempty"`
	// Steps in any order: parameters are changed first, then calls made, then
	// the function is removed or replaced.
	Steps []Step `json:"steps,omitempty"`
}

// Code makes the program for a site, to lie at the address at, a multiple of
// SlotBytes; whole slots. It is refused where that is too far from what the
// displaced instruction refers to.
func (p Program) Code(s Site, at uint64, e Environment) ([]byte, error) {
	a := &assembler{at: at}
	blocks := p.blocks(a, s)
	if len(p.Steps) > 0 || s.wide {
		behind := a.forward(JumpOpcode)
		a.padTo(blocks * blockBytes)
		a.here(behind)
		p.act(a, e)
	}
	a.displaced(s)
	a.padTo(blocks * blockBytes)
	a.constants()
	if a.err != nil {
		return nil, a.err
	}
	return p.complete(a.code, blocks, s, e)
}

// blocks makes all blocks, the last one up to what follows its call, and says
// how many there are.
func (p Program) blocks(a *assembler, s Site) (n int) {
	switch {
	case s.leaves == perhaps:
		a.branch(s)
		n++
		a.padTo(n * blockBytes)
	case len(s.before()) > 0:
		a.before(s)
		n++
		a.padTo(n * blockBytes)
	}
	for i := range p.Numbers {
		if i > 0 {
			a.emit(0xeb, blockBytes-blockNext-2) // jmp to the next block
			a.padTo(n * blockBytes)
		}
		a.emit(0xff, 0x15, blockHook-blockNext, 0, 0, 0) // call *hook
		n++
	}
	if len(p.Numbers) == 0 {
		n++
	}
	return n
}

// branch goes to the next block where the displaced jump is taken, else on
// with the function.
func (a *assembler) branch(s Site) {
	taken := a.forward(s.last().conditional()...)
	a.jump(s.Continue())
	a.put32(taken, uint32(blockBytes-taken-4))
}

// before does what the function does before it ends, where that is displaced
// too, and goes to the next block.
func (a *assembler) before(s Site) {
	for _, i := range s.before() {
		code, err := i.move(a.address())
		a.note(err)
		a.emit(code...)
	}
	a.jump(a.at + blockBytes)
	if len(a.code) > blockNumber {
		a.note(errTooLong)
	}
}

func (p Program) act(a *assembler, e Environment) {
	for _, step := range p.Steps {
		if step.Parameter != nil {
			a.parameter(*step.Parameter)
		}
	}
	for _, step := range p.Steps {
		if step.Call != nil {
			a.call(*step.Call, e)
		}
	}
	for _, step := range p.Steps {
		switch {
		case step.Remove != nil:
			a.remove(*step.Remove)
		case step.Replace != nil:
			a.relative(word(step.Replace.Target), 0xff, 0x25) // jmp *target
		}
	}
}

// displaced ends a program: what the patch displaced, as far as it was not
// done yet, and a jump behind it.
func (a *assembler) displaced(s Site) {
	if s.leaves == perhaps {
		a.jump(s.last().target())
		return
	}
	s.displaced = s.displaced[len(s.before()):]
	code, err := s.Relocate(a.address())
	a.note(err)
	a.emit(code...)
}
