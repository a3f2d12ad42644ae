// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"context"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/patch"
)

// errTail: what a function returns is not known where it ends, some of the time.
var errTail = fmt.Errorf("%w: it ends in a jump to another function, whose result is not seen there", patch.ErrUnpatchable)

// errTailTimed: a duration would end with the jump, and leave out what the other
// function does: a few nanoseconds where the call takes milliseconds.
var errTailTimed = fmt.Errorf("%w: it ends in a jump to another function, which returns in its place: a patch does not see when (compile with -fno-optimize-sibling-calls, or time what calls it)", patch.ErrUnpatchable)

// measure is [Sites.Measure].
func (c *changer) measure(ctx context.Context, f Function, number int, at Where) error {
	fn, key := c.known.at(f), KeyOf(f)
	before := fn.do.measures(uint32(number))
	switch {
	case !at.Entry && !at.Exits:
	case !before:
		if err := c.functions.measures(key); err != nil {
			return err
		}
	case c.functions.kernel(key):
		return ErrWatched
	}
	err := c.remeasure(ctx, fn, number, at)
	if (before || at.Entry || at.Exits) && !fn.do.measures(uint32(number)) {
		c.functions.ends(key, 1)
	}
	return err
}

// remeasure is measure for a function that may be patched.
func (c *changer) remeasure(ctx context.Context, fn *function, number int, at Where) error {
	if err := c.need(ctx, fn, at.Entry, at.Exits); err != nil {
		return err
	}
	if err := fn.risk(at); err != nil && !at.Beside {
		return err
	}
	if err := c.sees(fn, at); err != nil {
		return err
	}
	return c.change(ctx, fn, fn.do.measured(c.functions.self(), uint32(number), at.Entry, at.Exits))
}

// sees refuses what a patch of a function would take wrongly.
func (d finder) sees(fn *function, at Where) error {
	switch {
	case fn.tails && at.Exits && at.Result:
		return errTail
	case fn.tails && at.Exits && at.Entry:
		return errTailTimed
	case at.Exits && at.Entry:
		return d.straight(fn)
	}
	return nil
}

// risk says which jump that a measure point needs reaches into another function.
func (fn *function) risk(at Where) error {
	var used []*spot
	if at.Exits {
		used = slices.Clone(fn.exits)
	}
	if at.Entry {
		used = append(used, fn.entry)
	}
	for _, p := range used {
		if p.beside != nil {
			return p.beside
		}
	}
	return nil
}
