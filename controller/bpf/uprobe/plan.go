// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/cilium/ebpf"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/internal/objfile/usdt"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Constants of include/plan.h.
const (
	operandRegister = 1
	operandConstant = 2
	operandMemory   = 3
	noRegister      = 0xff

	planStatic      = 1 << 0
	planDuration    = 1 << 1
	planInstruction = 1 << 2
)

// ErrTooManyPoints is returned when as many points are attached as the kernel
// side has room for: 1,024, each file and each place of a static probe counted.
var ErrTooManyPoints = errors.New("too many attached points")

// planTable hands plans out to attachments. The cookie of a probe has the number
// of its plan, so a number is given away again only when no probe has it.
type planTable struct {
	mu     sync.Mutex // guards what follows
	shared bpf.SharedArray[uprobesPlan]
	free   []uint32
}

func (t *planTable) open(plans *ebpf.Map) error {
	shared, err := bpf.MapArray[uprobesPlan](plans)
	if err != nil {
		return fmt.Errorf("map plans: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shared = shared
	for i := range shared.Elements {
		t.free = append(t.free, uint32(i))
	}
	return nil
}

func (t *planTable) add(plan uprobesPlan) (uint32, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) == 0 {
		return 0, ErrTooManyPoints
	}
	number := t.free[0]
	t.free = t.free[1:]
	t.shared.Elements[number] = plan
	return number, nil
}

// retire makes probes with these plans do nothing, from now on.
func (t *planTable) retire(numbers []uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, number := range numbers {
		if t.shared.Elements != nil {
			t.shared.Elements[number].Point = 0
		}
	}
}

// release takes plans back that no probe has any more.
func (t *planTable) release(numbers []uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free = append(t.free, numbers...)
}

func (t *planTable) close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shared.Unmap()
}

// ofHolder are the spots with cookies by which hits of the process only are taken, or with 0
// those of all (include/plan.h).
func ofHolder(spots []bpf.Spot, pid int) []bpf.Spot {
	spots = slices.Clone(spots)
	for i := range spots {
		spots[i].Cookie |= uint64(pid) << 32
	}
	return spots
}

// planOf says what a probe finds at a symbol. The error is the reason why the
// symbol cannot be probed as the spec asks.
func planOf(spec Spec, symbol Symbol, isGo bool) (uprobesPlan, error) {
	plan := uprobesPlan{Point: uint32(spec.Point)}
	switch {
	case symbol.Static:
		plan.Flags |= planStatic
	case symbol.Return:
		plan.Flags |= planInstruction
	}
	if spec.Place == attunev1.Place_PLACE_BOTH {
		plan.Flags |= planDuration
	}
	if symbol.Static {
		err := planStaticProbe(&plan, spec, symbol)
		return plan, err
	}
	registers := parameterRegisters(isGo)
	if int64(spec.Parameter) >= int64(len(registers)) {
		return plan, fmt.Errorf("%w: parameter %d is not passed in a register", errSpec, spec.Parameter)
	}
	for i, register := range registers {
		plan.Operand[i] = uprobesOperand{Kind: operandRegister, Base: register, Size: 8}
	}
	plan.Value = plan.Operand[spec.Parameter]
	return plan, nil
}

func planStaticProbe(plan *uprobesPlan, spec Spec, symbol Symbol) error {
	wanted := wantedArguments(spec.Program)
	if spec.wantsValue() {
		wanted = append(wanted, int(min(spec.Parameter, math.MaxInt32)))
	}
	if len(wanted) > 0 && symbol.ArgumentError != nil {
		return symbol.ArgumentError
	}
	for _, i := range wanted {
		if i >= min(len(symbol.Arguments), len(plan.Operand)) {
			return fmt.Errorf("it has %d arguments: there is no argument %d", len(symbol.Arguments), i)
		}
	}
	if err := checkFloats(spec, symbol.Arguments); err != nil {
		return err
	}
	for i, argument := range symbol.Arguments[:min(len(symbol.Arguments), len(plan.Operand))] {
		operand, err := operandOf(argument)
		if err != nil && slices.Contains(wanted, i) {
			return fmt.Errorf("argument %d: %w", i, err)
		}
		plan.Operand[i] = operand
	}
	// Counting needs no value: one that is not there is 0.
	if int64(spec.Parameter) < int64(len(plan.Operand)) {
		plan.Value = plan.Operand[spec.Parameter]
	}
	return nil
}

// checkFloats refuses to take a static probe's floating point number for anything else:
// its bits would pass for an integer. That a number is one, only its probe knows, and a
// probe of an old header does not.
func checkFloats(spec Spec, arguments []usdt.Operand) error {
	isFloat := func(i int) bool { return i < len(arguments) && arguments[i].Float }
	for _, c := range spec.Program.Captures {
		parameter := c.Source == capture.SourceParameter || c.Source == capture.SourceFloatParameter
		if !parameter || !isFloat(c.Index) {
			continue
		}
		want, name := capture.TypeF64, "f64"
		if arguments[c.Index].Size == 4 {
			want, name = capture.TypeF32, "f32"
		}
		if c.Source != capture.SourceFloatParameter || c.Type != want {
			return fmt.Errorf("argument %d is a floating point number: capture it as %s, arg%[1]d:%[2]s", c.Index, name)
		}
	}
	if spec.wantsValue() && isFloat(int(min(spec.Parameter, math.MaxInt32))) {
		return fmt.Errorf("argument %d is a floating point number, and a point's value an integer: capture it instead", spec.Parameter)
	}
	return nil
}

// operandOf is the zero operand, which cannot be read, with an error.
func operandOf(argument usdt.Operand) (uprobesOperand, error) {
	o := uprobesOperand{Base: noRegister, Index: noRegister, Size: uint8(argument.Size), Value: argument.Value}
	if argument.Signed {
		o.IsSigned = 1
	}
	var err error
	if argument.Base != "" {
		o.Base, err = registerOf(argument.Base)
	}
	if err == nil && argument.Index != "" {
		o.Index, err = registerOf(argument.Index)
		o.Shift = uint8(bits.TrailingZeros8(uint8(argument.Scale)))
	}
	if err != nil {
		return uprobesOperand{}, err
	}
	switch argument.Kind {
	case usdt.Constant:
		o.Kind = operandConstant
	case usdt.Register:
		o.Kind = operandRegister
	case usdt.Memory:
		o.Kind = operandMemory
	}
	return o, nil
}
