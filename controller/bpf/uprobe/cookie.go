// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/attune-hpc/attune/controller/bpf"
)

// castTypes are the numbers, in the running kernel's type information, of what
// programs need to find their attach cookie without the helper's call, which takes
// 15 to 20 ns of each hit. The zero value means that they have to call it.
type castTypes struct {
	function uint32 // bpf_rdonly_cast
	context  uint32 // struct bpf_uprobe_multi_run_ctx
}

// findCastTypes looks for both: kernels from 6.6 on have them. It takes 2 ms.
func findCastTypes() (found castTypes) {
	err := bpf.WithFile(bpf.KernelTypesPath, func(raw []byte) (err error) {
		if found.context, err = bpf.FindType(raw, bpf.KindStruct, "bpf_uprobe_multi_run_ctx"); err != nil || found.context == 0 {
			return err
		}
		found.function, err = bpf.FindType(raw, bpf.KindFunction, "bpf_rdonly_cast")
		return err
	})
	if err != nil || found.function == 0 {
		return castTypes{}
	}
	return found
}

// apply makes programs use them. The loader would find the function itself, by an
// index of all of the kernel's types, which takes 25 ms.
func (c castTypes) apply(spec *ebpf.CollectionSpec) error {
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
	return spec.Variables[uprobesVarRunCtxType].Set(c.context)
}
