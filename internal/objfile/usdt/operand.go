// SPDX-License-Identifier: Apache-2.0

package usdt

import (
	"debug/elf"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrArgument says that an argument is written in a way that is not
// understood. Compilers may use any operand of their assembler.
var ErrArgument = errors.New("argument of static probe not understood")

// maxArguments is what <sys/sdt.h> allows.
const maxArguments = 12

// OperandKind says where an argument is.
type OperandKind int

// Kinds of operands.
const (
	// Constant: the argument is Value.
	Constant OperandKind = iota + 1
	// Register: it is in Base.
	Register
	// Memory: it is at Base + Index*Scale + Value.
	Memory
)

// Operand is one argument of a probe.
type Operand struct {
	Kind OperandKind
	// Size in bytes: 1, 2, 4 or 8; of a register, its lowest bytes.
	Size int
	// Signed integers are to be extended with their sign; Float is IEEE 754.
	Signed, Float bool
	// Value is the constant or the displacement.
	Value int64
	// Base and Index are registers under the names of the processor's manual
	// for their full width ("rdi", "xmm0"); "" for none.
	Base, Index string
	// Scale of the index: 1, 2, 4 or 8; 0 without index.
	Scale int
}

// ParseArguments understands the arguments of a probe as the assembler wrote
// them, "-4@%edi 8@-16(%rbp)". An error wraps [ErrArgument]; programs for other
// machines than x86-64 have another syntax, which is not understood.
func ParseArguments(machine elf.Machine, text string) ([]Operand, error) {
	if machine != elf.EM_X86_64 {
		return nil, fmt.Errorf("%w: on %v", ErrArgument, machine)
	}
	var operands []Operand
	for _, argument := range split(text) {
		if len(operands) == maxArguments {
			return nil, fmt.Errorf("%w: more than %d", ErrArgument, maxArguments)
		}
		operand, err := parse(argument)
		if err != nil {
			return nil, err
		}
		operands = append(operands, operand)
	}
	return operands, nil
}

// split separates by spaces, but not by those within brackets: (%rax, %rbx).
func split(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ' ' && depth <= 0
	})
}

// parse reads SIZE@OPERAND. SIZE is negative for signed integers and has an f
// for floating point; without SIZE@ the argument is a word of the machine.
func parse(argument string) (Operand, error) {
	size, rest, sized := strings.Cut(argument, "@")
	o := Operand{Size: 8}
	if !sized {
		rest = argument
	} else if err := o.parseSize(size); err != nil {
		return Operand{}, fmt.Errorf("%w: size of %q", err, argument)
	}
	if o, ok := o.x86(rest); ok {
		if o.Kind == Constant {
			o.Value = o.widen(o.Value)
		}
		return o, nil
	}
	return Operand{}, fmt.Errorf("%w: %q", ErrArgument, argument)
}

func (o *Operand) parseSize(text string) error {
	number, float := strings.CutSuffix(text, "f")
	size, err := strconv.Atoi(number)
	if o.Signed = size < 0; o.Signed {
		size = -size
	}
	o.Size, o.Float = size, float
	switch size {
	case 1, 2, 4, 8:
	default:
		err = ErrArgument
	}
	if err != nil {
		return ErrArgument
	}
	return nil
}

// widen gives a constant of the operand's size all 64 bits. Compilers write an unsigned one
// by its sign as well: 4@$-1 is 4294967295.
func (o Operand) widen(value int64) int64 {
	unused := 64 - 8*o.Size
	if o.Signed {
		return value << unused >> unused
	}
	return int64(uint64(value) << unused >> unused)
}

// integer reads a constant of the assembler, decimal or hexadecimal.
func integer(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return n, true
	}
	n, err := strconv.ParseUint(text, 0, 64)
	return int64(n), err == nil
}
