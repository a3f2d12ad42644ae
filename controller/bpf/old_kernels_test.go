// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// TestProgramsForLinux510: what follows processes and accounts for them does nothing that the
// kernel refuses before Linux 5.12 (atomic operations other than an addition whose result nobody
// uses) or before 5.18 (a fourth argument of a switch).
func TestProgramsForLinux510(t *testing.T) {
	switches := 0
	for _, object := range []string{"procevent/processevents_bpfel.o", "taskaccount/taskaccount_bpfel.o"} {
		collection, err := ebpf.LoadCollectionSpec(object)
		if err != nil {
			t.Fatal(err)
		}
		for name, program := range collection.Programs {
			for _, i := range program.Instructions {
				if op := i.OpCode.AtomicOp(); op != asm.InvalidAtomic && op != asm.AddAtomic {
					t.Errorf("%s of %s: %v", name, object, i)
				}
			}
			if strings.HasSuffix(program.SectionName, "/sched_switch") {
				switches++
				if last := lastArgument(program.Instructions); last > 2 {
					t.Errorf("%s of %s reads argument %d", name, object, last)
				}
			}
		}
	}
	if switches != 2 {
		t.Errorf("%d programs at switches, want 2", switches)
	}
}

// lastArgument returns the greatest number of an argument that a program at a raw tracepoint
// reads, by where its context is as the instructions follow each other.
func lastArgument(instructions asm.Instructions) (last int) {
	context := map[asm.Register]bool{asm.R1: true}
	for _, i := range instructions {
		class := i.OpCode.Class()
		switch {
		case class == asm.LdXClass && context[i.Src]:
			last = max(last, int(i.Offset)/8)
			delete(context, i.Dst)
		case class == asm.ALU64Class && i.OpCode.ALUOp() == asm.Mov && i.OpCode.Source() == asm.RegSource:
			context[i.Dst] = context[i.Src]
		case class == asm.LdXClass, class == asm.LdClass, class == asm.ALUClass, class == asm.ALU64Class:
			delete(context, i.Dst)
		case i.OpCode.JumpOp() == asm.Call:
			for r := asm.R0; r <= asm.R5; r++ {
				delete(context, r)
			}
		}
	}
	return last
}
