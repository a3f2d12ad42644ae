// SPDX-License-Identifier: Apache-2.0

package patch

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
	displaced(a, s)
	a.padTo(blocks * blockBytes)
	a.constants()
	if a.err != nil {
		return nil, a.err
	}
	return p.complete(a.code, blocks, s, e)
}

// blocks makes the blocks up to what follows the call, and says how many there are
// in all.
func (p Program) blocks(a *assembler, s Site) (n int) {
	switch {
	case s.leaves == perhaps:
		branch(a, s)
		n++
		a.padTo(n * blockBytes)
	case len(s.before()) > 0:
		before(a, s)
		n++
		a.padTo(n * blockBytes)
	}
	if len(p.Numbers) > 0 {
		a.emit(0xff, 0x15, blockHook-blockNext, 0, 0, 0) // call *hook
	}
	return n + max(len(p.Numbers), 1)
}

// branch goes to the next block where the displaced jump is taken, else on
// with the function.
func branch(a *assembler, s Site) {
	taken := a.forward(s.last().conditional()...)
	a.jump(s.Continue())
	a.put32(taken, uint32(blockBytes-taken-4))
}

// before does what the function does before it ends, where that is displaced
// too, and goes to the next block.
func before(a *assembler, s Site) {
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

// act does what the steps say, in the order that [Program.Steps] names.
func (p Program) act(a *assembler, e Environment) {
	for _, step := range p.Steps {
		if step.Parameter != nil {
			step.Parameter.assemble(a)
		}
	}
	for _, step := range p.Steps {
		if step.Call != nil {
			step.Call.assemble(a, e)
		}
	}
	for _, step := range p.Steps {
		switch {
		case step.Remove != nil:
			step.Remove.assemble(a)
		case step.Replace != nil:
			step.Replace.assemble(a)
		}
	}
}

// displaced ends a program: what the patch displaced, as far as it was not
// done yet, and a jump behind it.
func displaced(a *assembler, s Site) {
	if s.leaves == perhaps {
		a.jump(s.last().target())
		return
	}
	s.displaced = s.displaced[len(s.before()):]
	code, err := s.Relocate(a.address())
	a.note(err)
	a.emit(code...)
}
