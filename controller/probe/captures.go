// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What capturing adds to a hit, nanoseconds: estimated, one system call for each
// step through memory.
const (
	costProgram = 30
	// costRead is one step through memory: DMLib asks the kernel for it.
	costRead = 2000
	// costText and costStack are what the kernel's probes take for a key that is a string,
	// and for a stack of ten functions.
	costText  = 250
	costStack = 3000
	// costTrap is what the kernel's probe takes in any case. It reads memory for
	// next to nothing then.
	costTrap = 1000
)

// Reasons why DMLib cannot capture something.
var (
	errHookReal  = errors.New("the functions that DMLib hooks have no floating point parameters and results")
	errExitWants = errors.New("a patched exit does not know any more what the call began with")
	errKernelKey = errors.New("DMLib keeps hits apart by numbers: strings, stacks and texts with a length are read by the kernel's probes")
	errFiltered  = errors.New("a seccomp filter of the process might kill it for the system call with which DMLib reads memory")
)

// captures is what a point captures in one process.
type captures struct {
	program capture.Program
	globals []uint64 // addresses of its variables
}

// capturesOf finds what a point captures. An object that is not there yet may
// bring a variable later.
func (h *host) capturesOf(spec *attunev1.MeasurePoint) (captures, error) {
	program, err := capture.Compile(spec)
	c := captures{program: program}
	if err != nil || len(program.Globals()) == 0 {
		return c, err
	}
	images, err := h.images()
	if err != nil {
		return c, err
	}
	for i := range c.program.Captures {
		one := &c.program.Captures[i]
		if one.Source != capture.SourceGlobal {
			continue
		}
		found, err := objfile.LookupIn(images, one.Global.Object, one.Global.Symbol, objfile.Variable)
		if err == nil && found.Address == 0 {
			err = objfile.ErrThreadLocal
		}
		if err != nil {
			return c, fmt.Errorf("capture %q: %w", one.Name, err)
		}
		c.globals = append(c.globals, found.Address)
		// The program itself is never unloaded. What is read has to be inside.
		first := int64(one.Dereference[0])
		one.StaysMapped = found.Image.Main() && first >= 0 && uint64(first)+8 <= found.Symbol.Size
	}
	return c, nil
}

// reads counts the steps through memory that DMLib would ask the kernel for: at
// each hit, for conditions, and for what is summed up or keeps sums apart; and
// once more where the hit is delivered.
func (c captures) reads(sumsUp bool) (each, delivered int) {
	for i, one := range c.program.Captures {
		n := len(one.Dereference)
		if one.StaysMapped {
			n--
		}
		condition := slices.ContainsFunc(c.program.Predicates, func(p capture.Predicate) bool { return p.Capture == i })
		if condition || sumsUp && (i == c.program.Value || i == c.program.Key) {
			each += n
		} else {
			delivered += n
		}
	}
	return each, delivered
}

// cost is what capturing adds to a hit by DMLib, nanoseconds, as a point is
// delivered: of one call in some, only that one is looked at.
func (c captures) cost(spec *attunev1.MeasurePoint) float64 {
	if c.program.Empty() {
		return 0
	}
	level := asked(spec)
	each, delivered := c.reads(level == budget.Aggregated)
	if level == budget.Aggregated {
		return costProgram + costRead*float64(each)
	}
	all := costProgram + costRead*float64(each+delivered)
	if level == budget.Sampled {
		return all / float64(powerOfTwo(spec.GetSampleEvery()))
	}
	return all
}

// kernelOnly says that the kernel's probes alone can take what a point captures.
func (c captures) kernelOnly() bool {
	return c.program.KeyText() || c.program.Has(func(one capture.Capture) bool { return one.Type == capture.TypeSized })
}

// KernelOnly says that a point can be served by the kernel's probes alone, whatever the process: it
// is a static probe, or keeps hits apart by what is no number.
func KernelOnly(spec *attunev1.MeasurePoint) bool {
	if spec.GetUsdt() != nil {
		return true
	}
	program, err := capture.Compile(spec)
	return err == nil && captures{program: program}.kernelOnly()
}

// costInKernel is what the kernel's probes take beside the trap, nanoseconds.
func (c captures) costInKernel() float64 {
	switch {
	case c.program.KeyStack():
		return costStack
	case c.program.KeyText():
		return costText
	}
	return 0
}

// control is what DMLib is told to deliver. mechanism is by which it sees the
// function; what that cannot capture is refused.
func (h *host) control(index uint16, spec *attunev1.MeasurePoint, mechanism string) (shm.PointControl, captures, error) {
	out := control(index, spec)
	out.Scale = h.options.Clock.Scale()
	c, err := h.capturesOf(spec)
	if err != nil || c.program.Empty() {
		return out, c, err
	}
	if c.kernelOnly() {
		return out, c, errKernelKey
	}
	atExit := spec.GetPlace() == attunev1.Place_PLACE_EXIT || spec.GetPlace() == attunev1.Place_PLACE_BOTH
	for _, one := range c.program.Captures {
		switch s := one.Source; {
		case mechanism == MechanismHook && (s == capture.SourceFloatParameter || s == capture.SourceFloatReturned):
			err = errHookReal
		case mechanism == MechanismPatch && atExit && (s == capture.SourceParameter || s == capture.SourceFloatParameter):
			err = errExitWants
		}
		if err != nil {
			return out, c, fmt.Errorf("capture %q: %w", one.Name, err)
		}
	}
	if each, delivered := c.reads(false); each+delivered > 0 && inject.Unfiltered(h.process.PID()) != nil {
		return out, c, errFiltered
	}
	out.Program, err = shm.NewProgram(c.program, c.globals)
	return out, c, err
}
