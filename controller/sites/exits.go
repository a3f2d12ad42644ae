// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"context"
	"fmt"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/patch/flow"
)

// errTail: what a function returns is not known where it ends, some of the time.
var errTail = fmt.Errorf("%w: it ends in a jump to another function, whose result is not seen there", patch.ErrUnpatchable)

// errTailTimed: a duration would end with the jump, and leave out what the other
// function does: a few nanoseconds where the call takes milliseconds.
var errTailTimed = fmt.Errorf("%w: it ends in a jump to another function, which returns in its place: a patch does not see when (compile with -fno-optimize-sibling-calls, or time what calls it)", patch.ErrUnpatchable)

// findExits prepares all exits of a function. The caller holds s.mu.
func (s *Sites) findExits(ctx context.Context, w writer, fn *function) error {
	if fn.exits != nil {
		return nil
	}
	_, hook := w.hooks()
	if hook == 0 && w.memory != nil {
		return fmt.Errorf("%w: DMLib there serves no exits", patch.ErrUnpatchable)
	}
	o, done, err := w.object(fn.Image)
	if err != nil {
		return err
	}
	defer done()
	found, _, err := o.exits(fn.Symbol)
	if err != nil {
		return err
	}
	exits, tails := make([]*spot, 0, len(found)), false
	for i, exit := range found {
		p, err := s.exit(ctx, w, fn, o, hook, found[i:], append(exits, fn.entry))
		if err != nil {
			return fmt.Errorf("exit at %#x: %w", exit.Address, err)
		}
		exits, tails = append(exits, p), tails || exit.Tail
	}
	fn.exits, fn.tails = exits, tails
	for _, p := range exits {
		s.inherited(fn, p)
	}
	return nil
}

// exit prepares the first exit of those that are left, by one byte, or else by
// a whole jump that takes in what comes before it. done are the others.
func (s *Sites) exit(ctx context.Context, w writer, fn *function, o *object, hook uint64, left []flow.Exit, done []*spot) (*spot, error) {
	exit := left[0]
	code, err := o.CodeAt(exit.Address, patch.SiteBytes)
	if err != nil {
		return nil, err
	}
	site, err := patch.ExamineExit(fn.Image.Address(exit.Address), code, exit)
	if err == nil && len(left) > 1 && left[1].Address < exit.Address+patch.JumpBytes {
		err = fmt.Errorf("%w: it is %d bytes from another one", patch.ErrUnpatchable, left[1].Address-exit.Address)
	}
	return s.eitherWay(ctx, w, fn, o, site, err, hook, done, func() (patch.Site, error) {
		around, err := o.around(fn.Symbol, exit.Address)
		if err != nil {
			return patch.Site{}, err
		}
		return patch.WideExit(exit, around, fn.Image.Bias)
	})
}

// distinct refuses a place whose patch would change the jump of another one.
func distinct(site patch.Site, others []*spot) error {
	for _, other := range others {
		if other != nil && site.Overlaps(other.site) {
			return fmt.Errorf("%w: it is %d bytes from what else is patched",
				patch.ErrUnpatchable, int64(other.site.Address-site.Address))
		}
	}
	return nil
}
