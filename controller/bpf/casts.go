// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// castFunction is a function of the kernel that programs may call, from Linux 6.2 on.
const castFunction = "bpf_rdonly_cast"

// Casts let programs read objects of the kernel as what they are, without the helper's
// call, which takes 10 to 20 ns for each member. The zero value means that they have
// to call it.
type Casts struct {
	function uint32            // its number in the running kernel's type information
	types    map[string]uint32 // of structs
}

// FindCasts looks for the function and for structs, all of which the kernel must
// have. It takes 2 ms.
func FindCasts(structs ...string) (c Casts) {
	err := WithFile(KernelTypesPath, func(raw []byte) (err error) {
		if c.types, err = findTypes(raw, kindStruct, structs...); err != nil || len(c.types) < len(structs) {
			return err
		}
		functions, err := findTypes(raw, kindFunction, castFunction)
		c.function = functions[castFunction]
		return err
	})
	if err != nil || c.function == 0 {
		return Casts{}
	}
	return c
}

// Apply makes programs use them: each variable gets the number of its struct, or 0. The
// loader would find the function itself, by an index of all of the kernel's
// types, which takes 25 ms.
func (c Casts) Apply(spec *ebpf.CollectionSpec, variables map[string]string) error {
	for _, program := range spec.Programs {
		for i, instruction := range program.Instructions {
			if !instruction.IsKfuncCall() {
				continue
			}
			if c.function == 0 {
				program.Instructions[i] = asm.Mov.Imm(asm.R0, 0) // is not reached
				continue
			}
			program.Instructions[i] = asm.Instruction{
				OpCode: instruction.OpCode, Src: asm.PseudoKfuncCall, Constant: int64(c.function),
			}
		}
	}
	var errs []error
	for variable, name := range variables {
		errs = append(errs, spec.Variables[variable].Set(c.types[name]))
	}
	return errors.Join(errs...)
}
