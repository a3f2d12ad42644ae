// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"reflect"
	"slices"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/controller/capture"
	"github.com/attune-hpc/attune/internal/objfile/usdt"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Symbol is one place to probe, a function as a rule.
type Symbol struct {
	// Name is for reports only.
	Name string
	// Offset of the function's first instruction in the file (not its
	// address), as internal/objfile resolves it, or that of a static probe.
	Offset uint64
	// Counter is the offset in the file of a static probe's semaphore, which
	// the kernel increments in every process that maps the file for as long as
	// the probe is attached (ref_ctr_offset); 0: there is none.
	Counter uint64
	// Return says that Offset is that of a return instruction: the exit of a
	// function is probed there, as Go code needs it. Only with Place exit.
	Return bool
	// Static says that this is a static probe, whose parameters are Arguments.
	// Only with Place entry.
	Static bool
	// Arguments of a static probe. If they are not understood, ArgumentError
	// says why: it can be counted, but nothing captured.
	Arguments     []usdt.Operand
	ArgumentError error
}

// Spec describes one measure point in one file.
type Spec struct {
	// File is the binary or library, open for reading. It stays the
	// caller's. If nil, Path is opened.
	File *os.File
	// Path of the file, for reports and if File is nil. For what another
	// process maps give File: a path there may be another file here, or by now.
	Path string
	// PID of the process for which the point is attached, in our pid namespace; 0: for
	// all that map the file. Others that map it have the breakpoint as well, until
	// one runs that would not survive it: then those only for which it is held. A return
	// probe stands in these only from the beginning, from Linux 6.10 on.
	PID int
	// Symbols to probe; at least one. Hits of all count as one point.
	Symbols []Symbol
	// Point is the index by which records and aggregates name the point, 1
	// to 65535. A point may be attached to several files, always with the
	// same delivery and predicate.
	Point uint16
	// Place; unspecified means entry. At entry the value is Parameter, at
	// exit what the function returns, at both the nanoseconds in between.
	Place attunev1.Place
	// Parameter is the position of the integer or pointer parameter to take,
	// 0 = first; of a static probe the argument, 0 where it has none. Those
	// passed on the stack cannot be had.
	Parameter uint32
	// Delivery; unspecified means aggregate. With any other, hits are counted
	// but not summed up.
	Delivery attunev1.Delivery
	// SampleMask with sampled delivery: a record is made of every
	// (SampleMask+1)th hit; a power of two less one.
	SampleMask uint32
	// CoarseTime allows a record to have the time of one of the 15 before it in
	// the same tick of the kernel's clock. It saves 50 ns a hit.
	CoarseTime bool
	// MinValue and MaxValue are the predicate: other values do not count.
	// MaxValue 0 means no upper bound.
	MinValue, MaxValue uint64
	// Program is what else is taken at each hit; empty: nothing. Parameters of
	// a static probe are its arguments, whatever their class. What a program
	// cannot have here makes Attach fail.
	Program capture.Program
	// Watches begin before the first probe is in place, so that no hit is missed
	// where something else has counted so far. Their point is Point, which is about to be
	// attached for their processes as well.
	Watches []Watch
}

// Watch is what to watch in one process.
type Watch struct {
	// PID of the process, in our pid namespace.
	PID int
	// StartTicks is field 22 of its /proc/PID/stat: with the pid it names the
	// process for good, and one that is given the pid later is not watched.
	// 0: that of the process that has the pid now.
	StartTicks uint64
	// Point that is attached.
	Point uint16
	// Globals are the addresses, in this process, of the variables that
	// Globals() of the point's program lists, in that order.
	Globals []uint64
	// Space is the process' code, where the point's key is the stack. It is closed when
	// the watch ends, or Watch fails.
	Space Space
}

// pointConfig is what all files of a point have in common.
type pointConfig struct {
	events     bool
	sampleMask uint32
	coarseTime bool
	minValue   uint64
	maxValue   uint64
	program    capture.Program
}

func (c pointConfig) equal(other pointConfig) bool { return reflect.DeepEqual(c, other) }

var errSpec = errors.New("invalid uprobe specification")

// errNoFloats is why floating point numbers in registers cannot be had.
var errNoFloats = errors.New("the kernel shows a probe the integer registers only, and this is a floating point number in a register")

// normalised returns the spec with its defaults filled in.
func (s Spec) normalised() (Spec, error) {
	if s.Place == attunev1.Place_PLACE_UNSPECIFIED {
		s.Place = attunev1.Place_PLACE_ENTRY
	}
	if s.Delivery == attunev1.Delivery_DELIVERY_UNSPECIFIED {
		s.Delivery = attunev1.Delivery_DELIVERY_AGGREGATE
	}
	if s.Delivery != attunev1.Delivery_DELIVERY_SAMPLED {
		s.SampleMask = 0
	}
	s.MaxValue = cmp.Or(s.MaxValue, math.MaxUint64)
	// Of no use here, and not the same in all processes of a point.
	s.Program.Captures = slices.Clone(s.Program.Captures)
	for i := range s.Program.Captures {
		s.Program.Captures[i].StaysMapped = false
	}
	switch {
	case s.Point == 0:
		return s, fmt.Errorf("%w: point 0", errSpec)
	case len(s.Symbols) == 0:
		return s, fmt.Errorf("%w: no symbols", errSpec)
	case s.Place != attunev1.Place_PLACE_EXIT && slices.ContainsFunc(s.Symbols, isReturn),
		s.returns() && !all(s.Symbols, isReturn):
		return s, fmt.Errorf("%w: a return instruction among others", errSpec)
	case s.Place != attunev1.Place_PLACE_ENTRY && slices.ContainsFunc(s.Symbols, isStatic):
		return s, fmt.Errorf("%w: a static probe has no exit", errSpec)
	case s.File == nil && s.Path == "":
		return s, fmt.Errorf("%w: neither file nor path", errSpec)
	case bits.OnesCount32(s.SampleMask+1) > 1:
		return s, fmt.Errorf("%w: sample mask %#x is not a power of two less one", errSpec, s.SampleMask)
	case s.MinValue > s.MaxValue:
		return s, fmt.Errorf("%w: no value between %d and %d", errSpec, s.MinValue, s.MaxValue)
	}
	return s, nil
}

func (s Spec) config() pointConfig {
	return pointConfig{
		events:     s.Delivery != attunev1.Delivery_DELIVERY_AGGREGATE,
		sampleMask: s.SampleMask,
		coarseTime: s.CoarseTime,
		minValue:   s.MinValue,
		maxValue:   s.MaxValue,
		program:    s.Program,
	}
}

// checkProgram looks for captures that the kernel cannot give.
func (s Spec) checkProgram() error {
	refused := func(reason string) error {
		return &bpf.UnsupportedError{Feature: "capture by a uprobe in " + s.Path, Reason: reason}
	}
	static := slices.ContainsFunc(s.Symbols, isStatic)
	for _, c := range s.Program.Captures {
		switch {
		case c.Source == capture.SourceFloatReturned, c.Source == capture.SourceFloatParameter && !static:
			return refused(fmt.Sprintf("%q: %v", c.Name, errNoFloats))
		case c.AtReturn() && static:
			return refused(fmt.Sprintf("%q: a static probe returns nothing", c.Name))
		case c.Source == capture.SourceParameter && s.returns():
			return refused(fmt.Sprintf("%q: at the return instructions of Go code parameters are gone", c.Name))
		}
	}
	return nil
}

// pairs says that calls are remembered from entry to exit: for their duration,
// or for parameters that are wanted at the return.
func (s Spec) pairs() bool {
	return s.Place == attunev1.Place_PLACE_BOTH ||
		s.Place == attunev1.Place_PLACE_EXIT && len(wantedArguments(s.Program)) > 0
}

// wantedArguments lists the arguments that a program captures.
func wantedArguments(program capture.Program) (arguments []int) {
	for _, c := range program.Captures {
		if c.Source == capture.SourceParameter || c.Source == capture.SourceFloatParameter {
			arguments = append(arguments, c.Index)
		}
	}
	return arguments
}

// wantsValue says that the point's own value was asked for: another than the
// first, or one within bounds.
func (s Spec) wantsValue() bool {
	return s.Parameter != 0 || s.MinValue != 0 || s.MaxValue != math.MaxUint64
}

func isReturn(s Symbol) bool { return s.Return }

func isStatic(s Symbol) bool { return s.Static }

func all(symbols []Symbol, is func(Symbol) bool) bool {
	return !slices.ContainsFunc(symbols, func(s Symbol) bool { return !is(s) })
}

// returns says that exits are probed at return instructions.
func (s Spec) returns() bool { return slices.ContainsFunc(s.Symbols, isReturn) }

// changesReturns says that the kernel changes return addresses on the stacks of each process
// in which the point stands, for its return probe.
func (s Spec) changesReturns() bool { return s.probesExit() && !s.returns() }

func (s Spec) probesExit() bool { return s.Place != attunev1.Place_PLACE_ENTRY }
