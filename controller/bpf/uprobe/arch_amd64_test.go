// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestClassify(t *testing.T) {
	const old, recent = 6<<16 | 1<<8, kernelKnowsNops
	tests := []struct {
		name   string
		code   []byte
		kernel uint32
		want   InstructionClass
	}{
		{"nop5", []byte{0x0f, 0x1f, 0x44, 0x00, 0x00}, recent, InstructionOptimised},
		{"nop5 before 6.18", []byte{0x0f, 0x1f, 0x44, 0x00, 0x00}, old, InstructionSingleStepped},
		{"other nop of 5 bytes", []byte{0x0f, 0x1f, 0x44, 0x00, 0x08}, recent, InstructionEmulated},
		{"nop", []byte{0x90}, old, InstructionEmulated},
		{"push rbp", []byte{0x55, 0x48, 0x89, 0xe5}, old, InstructionEmulated},
		{"push r12", []byte{0x41, 0x54}, old, InstructionEmulated},
		{"push with operand size", []byte{0x66, 0x55}, recent, InstructionSingleStepped},
		{"call", []byte{0xe8, 0, 0, 0, 0}, old, InstructionEmulated},
		{"jump", []byte{0xeb, 0x10}, old, InstructionEmulated},
		{"conditional jump", []byte{0x0f, 0x84, 0, 0, 0, 0}, old, InstructionEmulated},
		{"16-bit call", []byte{0x66, 0xe8, 0, 0}, old, InstructionSingleStepped},
		{"endbr64", []byte{0xf3, 0x0f, 0x1e, 0xfa}, recent, InstructionSingleStepped},
		{"sub rsp", []byte{0x48, 0x83, 0xec, 0x08}, recent, InstructionSingleStepped},
		{"ret", []byte{0xc3}, recent, InstructionSingleStepped},
		{"mov from fs", []byte{0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}, recent, InstructionSingleStepped},
		{"cs nop", []byte{0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, recent, InstructionRefused},
		{"lock inc", []byte{0xf0, 0xff, 0x07}, recent, InstructionRefused},
		{"breakpoint", []byte{0xcc}, recent, InstructionRefused},
		{"hlt", []byte{0xf4}, recent, InstructionRefused},
		{"syscall", []byte{0x0f, 0x05}, recent, InstructionRefused},
		{"nothing", nil, recent, InstructionUnknown},
		{"prefixes only", []byte{0x66, 0x66}, recent, InstructionUnknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := classify(test.code, test.kernel)
			if got.class != test.want {
				t.Errorf("class %v, want %v (%+v)", got.class, test.want, got)
			}
			if (got.reason != "") != (test.want == InstructionRefused) {
				t.Errorf("reason %q", got.reason)
			}
		})
	}
}

func FuzzClassify(f *testing.F) {
	f.Add([]byte{0x0f, 0x1f, 0x44, 0x00, 0x00})
	f.Add([]byte{0x41})
	f.Fuzz(func(_ *testing.T, code []byte) {
		classify(code[:min(len(code), maxInstruction)], kernelKnowsNops) // must not panic
	})
}

func TestCostGrowsWithClassAndPlace(t *testing.T) {
	places := []attunev1.Place{attunev1.Place_PLACE_ENTRY, attunev1.Place_PLACE_EXIT, attunev1.Place_PLACE_BOTH}
	classes := []InstructionClass{InstructionOptimised, InstructionEmulated, InstructionSingleStepped}
	for i, class := range classes {
		for j, place := range places {
			cost := class.cost(place)
			if i > 0 && cost <= classes[i-1].cost(place) || j > 0 && cost <= class.cost(places[j-1]) {
				t.Errorf("%v at %v costs %v", class, place, cost)
			}
		}
	}
	if InstructionRefused.cost(attunev1.Place_PLACE_ENTRY) != 0 {
		t.Error("what is not probed costs something")
	}
}

func TestParametersOfFunctions(t *testing.T) {
	tests := []struct {
		name      string
		isGo      bool
		parameter uint32
		want      uint8
		wantErr   bool
	}{
		{"C first is di", false, 0, 0, false},
		{"C last in a register is r9", false, 5, 5, false},
		{"C on the stack", false, 6, 0, true},
		{"Go first is ax", true, 0, 6, false},
		{"Go last in a register is r11", true, 8, 9, false},
		{"Go on the stack", true, 9, 0, true},
		{"absurd", false, 1 << 31, 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			plan, err := planOf(Spec{Parameter: test.parameter}, Symbol{}, test.isGo)
			if got := plan.Value.Base; got != test.want || (err != nil) != test.wantErr || err != nil && !errors.Is(err, errSpec) {
				t.Errorf("register %d, error %v", plan.Value.Base, err)
			}
		})
	}
}
