// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"

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
}

// UprobeSpec describes one measure point in one file.
type UprobeSpec struct {
	// File is the binary or library, open for reading. It stays the
	// caller's. If nil, Path is opened.
	File *os.File
	// Path of the file, for reports and if File is nil. For what another
	// process maps give File: a path there may be another file here, or by now.
	Path string
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
	// 0 = first. Those passed on the stack cannot be had.
	Parameter uint32
	// Delivery; unspecified means aggregate. Aggregates are kept with every
	// delivery.
	Delivery attunev1.Delivery
	// SampleMask with sampled delivery: a record is made of every
	// (SampleMask+1)th hit; a power of two less one.
	SampleMask uint32
	// MinValue and MaxValue are the predicate: other values do not count.
	// MaxValue 0 means no upper bound.
	MinValue, MaxValue uint64
}

// pointConfig is what all files of a point have in common.
type pointConfig struct {
	events     bool
	sampleMask uint32
	minValue   uint64
	maxValue   uint64
}

var errSpec = errors.New("invalid uprobe specification")

// normalised returns the spec with its defaults filled in.
func (s UprobeSpec) normalised() (UprobeSpec, error) {
	if s.Place == attunev1.Place_PLACE_UNSPECIFIED {
		s.Place = attunev1.Place_PLACE_ENTRY
	}
	if s.Delivery == attunev1.Delivery_DELIVERY_UNSPECIFIED {
		s.Delivery = attunev1.Delivery_DELIVERY_AGGREGATE
	}
	if s.Delivery != attunev1.Delivery_DELIVERY_SAMPLED {
		s.SampleMask = 0
	}
	if s.MaxValue == 0 {
		s.MaxValue = math.MaxUint64
	}
	switch {
	case s.Point == 0:
		return s, fmt.Errorf("%w: point 0", errSpec)
	case len(s.Symbols) == 0:
		return s, fmt.Errorf("%w: no symbols", errSpec)
	case s.Place != attunev1.Place_PLACE_EXIT && slices.ContainsFunc(s.Symbols, isReturn),
		s.returns() && !all(s.Symbols, isReturn):
		return s, fmt.Errorf("%w: a return instruction among others", errSpec)
	case s.File == nil && s.Path == "":
		return s, fmt.Errorf("%w: neither file nor path", errSpec)
	case bits.OnesCount32(s.SampleMask+1) > 1:
		return s, fmt.Errorf("%w: sample mask %#x is not a power of two less one", errSpec, s.SampleMask)
	case s.MinValue > s.MaxValue:
		return s, fmt.Errorf("%w: no value between %d and %d", errSpec, s.MinValue, s.MaxValue)
	}
	return s, nil
}

func (s UprobeSpec) config() pointConfig {
	return pointConfig{
		events:     s.Delivery != attunev1.Delivery_DELIVERY_AGGREGATE,
		sampleMask: s.SampleMask,
		minValue:   s.MinValue,
		maxValue:   s.MaxValue,
	}
}

func isReturn(s Symbol) bool { return s.Return }

func all(symbols []Symbol, is func(Symbol) bool) bool {
	return !slices.ContainsFunc(symbols, func(s Symbol) bool { return !is(s) })
}

// returns says that exits are probed at return instructions.
func (s UprobeSpec) returns() bool { return slices.ContainsFunc(s.Symbols, isReturn) }

func (s UprobeSpec) probesExit() bool { return s.Place != attunev1.Place_PLACE_ENTRY }
