// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/arch/x86/x86asm"
)

// Exit is an instruction with which a call of a function ends.
type Exit struct {
	// Address of the instruction.
	Address uint64
	// Tail says that it is a jump to another function, which returns to the
	// caller of this one: no result is there yet.
	Tail bool
	// Conditional says that the function goes on if the jump is not taken.
	Conditional bool
}

// maxExits is how many exits a function may have.
const maxExits = 64

// Layout says what the code is that a function jumps to outside of what is known
// to be its own, in parts. It is the function's as well, and part is not nil; or
// another function begins at the address; or the error says why that cannot be
// known.
type Layout func(address uint64, parts []Part) (part *Part, err error)

// Exits finds all exits of a function, in ascending order within each part; at
// least one. It returns all the parts as well. It is an error where it cannot be
// proven that they are all, and that they are.
//
// All the code is decoded one instruction after the other: compilers for x86-64
// put their tables elsewhere, and code that holds data shows by branches into
// the middle of what was decoded, or by instructions that there are not.
func Exits(function Part, layout Layout) ([]Exit, []Part, error) {
	d := decoding{parts: []Part{function}, layout: layout}
	for i := 0; i < len(d.parts); i++ {
		if err := d.part(d.parts[i]); err != nil {
			return nil, nil, err
		}
	}
	slices.Sort(d.begins)
	for _, target := range d.targets {
		if _, found := slices.BinarySearch(d.begins, target); !found {
			return nil, nil, fmt.Errorf("a branch leads to %#x, into an instruction: the code holds data", target)
		}
	}
	switch n := len(d.exits); {
	case n == 0:
		return nil, nil, errors.New("the function never returns")
	case n > maxExits:
		return nil, nil, fmt.Errorf("the function ends at %d places, more than %d", n, maxExits)
	}
	return d.exits, d.parts, nil
}

// decoding is the walk through the parts of one function.
type decoding struct {
	parts   []Part // grows
	layout  Layout
	begins  []uint64 // addresses of instructions
	targets []uint64 // of branches within the function
	exits   []Exit
	recent  []x86asm.Inst // before the present one, the latest last
}

// recentBefore is how far before an indirect jump is looked.
const recentBefore = 6

func (d *decoding) part(p Part) error {
	d.recent = nil
	var last x86asm.Inst
	for at := 0; at < len(p.Code); {
		inst, err := decode(p.Code[at:])
		if err != nil {
			return fmt.Errorf("instruction at +%#x is not understood", at)
		}
		address := p.Address + uint64(at)
		d.begins = append(d.begins, address)
		if err := d.instruction(address, inst); err != nil {
			return fmt.Errorf("%s at +%#x %w", inst.Op, at, err)
		}
		if d.recent = append(d.recent, inst); len(d.recent) > recentBefore {
			d.recent = d.recent[1:]
		}
		at += inst.Len
		if inst.Op != x86asm.NOP {
			last = inst
		}
	}
	switch last.Op {
	case x86asm.RET, x86asm.JMP, x86asm.CALL, x86asm.UD2, x86asm.HLT, x86asm.INT:
		return nil
	}
	return fmt.Errorf("it goes on behind its end, after %s", last.Op)
}

func (d *decoding) instruction(at uint64, inst x86asm.Inst) error {
	switch inst.Op {
	case x86asm.RET:
		d.exits = append(d.exits, Exit{Address: at})
	case x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.LJMP, x86asm.IN, x86asm.OUT, x86asm.SYSEXIT, x86asm.SYSRET:
		return errors.New("is no instruction of a program")
	case x86asm.CALL, x86asm.XBEGIN:
		return nil
	}
	if target, ok := inst.Args[0].(x86asm.Rel); ok {
		return d.branch(at, inst, at+uint64(inst.Len)+uint64(int64(target)))
	}
	if inst.Op == x86asm.JMP {
		return d.indirect(at, inst)
	}
	return nil
}

// branch notes where a direct jump leads. A seldom executed part becomes the
// function's with the first jump to it.
func (d *decoding) branch(at uint64, inst x86asm.Inst, target uint64) error {
	if !anyHolds(d.parts, target) {
		part, err := d.layout(target, d.parts)
		if err != nil {
			return err
		}
		if part == nil {
			d.exits = append(d.exits, Exit{Address: at, Tail: true, Conditional: inst.Op != x86asm.JMP})
			return nil
		}
		d.parts = append(d.parts, *part)
	}
	d.targets = append(d.targets, target)
	return nil
}

// indirect tells a jump through a table of the function's own code from a call
// of another function in tail position.
func (d *decoding) indirect(at uint64, inst x86asm.Inst) error {
	switch to := inst.Args[0].(type) {
	case x86asm.Mem:
		if to.Base == x86asm.RIP && to.Index == 0 { // the GOT, or a pointer to a function
			d.exits = append(d.exits, Exit{Address: at, Tail: true})
			return nil
		}
	case x86asm.Reg:
		if d.fromTable(to) {
			return nil
		}
	}
	if slices.Contains(inst.Prefix[:], x86asm.PrefixCS) || notrack(inst) {
		return nil // compilers mark jumps through tables so
	}
	return errors.New("may lead to another function, or to labels of this one")
}

// notrack says whether a jump is exempt from control-flow enforcement, as those
// through tables are.
func notrack(inst x86asm.Inst) bool {
	return slices.ContainsFunc(inst.Prefix[:], func(p x86asm.Prefix) bool { return p&0xff == x86asm.PrefixDS })
}

// fromTable says whether a register was computed as compilers do for tables of
// distances: movslq (table,index,4), %r; add table, %r.
func (d *decoding) fromTable(r x86asm.Reg) bool {
	loaded, added := false, false
	for _, inst := range d.recent {
		to, _ := inst.Args[0].(x86asm.Reg)
		from, ok := inst.Args[1].(x86asm.Mem)
		switch {
		case inst.Op == x86asm.MOVSXD && ok && from.Index != 0 && from.Scale == 4:
			loaded = true
		case inst.Op == x86asm.ADD && to == r:
			added = loaded
		case to == r:
			added = false
		}
	}
	return added
}
