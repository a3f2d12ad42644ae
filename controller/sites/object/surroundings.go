// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/patch/flow"
	"github.com/attune-hpc/attune/internal/objfile"
)

// Exits finds the exits of a function, and all the code that is its own.
// The error wraps [patch.ErrUnpatchable] where the code is the reason.
func (o *Object) Exits(s objfile.Symbol) ([]flow.Exit, []flow.Part, error) {
	if err := o.survey(); err != nil {
		return nil, nil, err
	}
	function, err := o.Function(s)
	if err != nil {
		return nil, nil, err
	}
	exits, parts, err := flow.Exits(function, func(address uint64, parts []flow.Part) (*flow.Part, error) {
		return o.partAt(s, address, parts)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", patch.ErrUnpatchable, err)
	}
	return exits, parts, nil
}

// errForeign: code that may be anybody's.
var errForeign = errors.New("leads to code that no symbol names: the seldom executed part of this function, or another function")

// partAt implements [flow.Layout] for a function.
func (o *Object) partAt(s objfile.Symbol, address uint64, parts []flow.Part) (*flow.Part, error) {
	if o.outline.Begins(address) {
		return nil, nil //nolint:nilnil // another function, says Layout
	}
	for _, cold := range o.outline.Cold(s) {
		if address >= cold.Value && address-cold.Value < cold.Size {
			part, err := o.Function(cold)
			return &part, err
		}
	}
	frame, ok := o.frames.Holding(address)
	if !ok || o.outline.BeginsIn(frame.Start, frame.End) {
		return nil, errForeign
	}
	return o.unnamed(frame, address, parts)
}

// unnamed tells what code is of which only .eh_frame knows. It is the
// function's own if the stack is not as a call leaves it, so that nobody else
// can have come there, or if nothing else leads to it; a function that others
// call as well is one.
func (o *Object) unnamed(frame objfile.Frame, address uint64, parts []flow.Part) (*flow.Part, error) {
	if frame.Entry {
		if err := o.load(); err != nil {
			return nil, err
		}
		switch led := o.aims.LedTo(frame.Start, parts); {
		case led && address == frame.Start:
			return nil, nil //nolint:nilnil // another function, says Layout
		case led:
			return nil, errForeign
		}
	}
	part, err := o.stretch(frame.Start, frame.End)
	return &part, err
}

// Around is what must be known to write a whole jump into a function at an
// address.
func (o *Object) Around(s objfile.Symbol, at uint64) (around flow.Surroundings, err error) {
	if err := errors.Join(o.survey(), o.load()); err != nil {
		return around, err
	}
	around = flow.Surroundings{Loaded: o.loaded, Aims: o.aims, Begins: o.outline.Begins, Holding: o.holding}
	if _, around.Function, err = o.Exits(s); err != nil {
		if around.Function, err = o.named(s); err != nil { // what is known of it
			return around, err
		}
	}
	start := at - min(at, flow.ShortReach)
	end := at + flow.ShortReach + patch.SiteBytes
	for _, near := range slices.Concat(o.frames.Between(start, end), o.outline.Between(start, end)) {
		holds := func(p flow.Part) bool { return near.Start >= p.Address && near.End <= p.Address+uint64(len(p.Code)) }
		if slices.ContainsFunc(around.Function, holds) || slices.ContainsFunc(around.Near, holds) {
			continue
		}
		part, err := o.stretch(near.Start, near.End)
		if err != nil {
			return around, err
		}
		around.Near = append(around.Near, part)
	}
	return around, nil
}

// holding finds the function that an address is in. The caller has called
// survey.
func (o *Object) holding(address uint64) (flow.Part, bool) {
	for _, f := range slices.Concat(o.frames.Between(address, address+1), o.outline.Between(address, address+1)) {
		if part, err := o.stretch(f.Start, f.End); err == nil {
			return part, true
		}
	}
	return flow.Part{}, false
}

// named are the parts of a function that have symbols.
func (o *Object) named(s objfile.Symbol) (parts []flow.Part, err error) {
	for _, s := range append([]objfile.Symbol{s}, o.outline.Cold(s)...) {
		part, err := o.Function(s)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}
