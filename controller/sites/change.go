// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/patch"
)

// changer changes what is done at functions of a process. It is for one goroutine,
// which holds the lock of the Sites.
type changer struct {
	finder
	together bool    // whole jumps that are to be taken out are only collected
	leaving  []*spot // with those jumps
}

// change makes something else be done at a function from now on. Exits come
// first and go last: an exit that finds no open call is nothing, an open call
// without an exit is lost. If the error is not nil all is as it was.
func (c *changer) change(ctx context.Context, fn *function, do doing) error {
	before := fn.do
	err := c.turn(ctx, fn, do)
	if err == nil || errors.Is(err, errStays) {
		fn.do = do
		return err
	}
	if back := c.turn(context.WithoutCancel(ctx), fn, before); back != nil {
		err = errors.Join(err, fmt.Errorf("and it could not be taken back: %w", back))
	}
	return err
}

func (c *changer) turn(ctx context.Context, fn *function, do doing) error {
	mapped, err := c.holds(fn.Function)
	if err != nil {
		return err
	}
	places := fn.all()
	if !do.any(true) { // the entry goes first
		slices.Reverse(places)
	}
	var stays error
	for _, p := range places {
		if err := c.turnOne(ctx, fn.Function, p, do.at(p == fn.entry), mapped); err != nil {
			stays = err
		}
		if stays != nil && !errors.Is(stays, errStays) {
			return stays
		}
	}
	return stays
}

// errStays: what was done at a function is not done any more, but the jump is
// still there. [Sites.Refresh] tries again.
var errStays = errors.New("the jump stays for now, and does nothing")

// turnOne makes one place do something else: first where the jump leads, then
// the jump itself. mapped is false if the code is not there any more.
func (c *changer) turnOne(ctx context.Context, f Function, p *spot, do patch.Program, mapped bool) error {
	if !do.Idle() && !mapped {
		return fmt.Errorf("%w: it was unloaded", patch.ErrUnpatchable)
	}
	if do.Key() != p.now.Key() {
		if err := c.lead(ctx, p, do); err != nil {
			return err
		}
	}
	switch {
	case !do.Idle():
		if err := c.known.apart(p.site); err != nil {
			return err
		}
		giveBack, err := c.functions.reach(f, p.site)
		if err != nil {
			return err
		}
		if err = p.activate(ctx, c.writer); !p.active {
			giveBack()
		}
		return err
	case mapped && c.together && p.site.Wide():
		c.leaving = append(c.leaving, p)
		return nil
	case mapped:
		err := p.deactivate(ctx, c.writer)
		if errors.Is(err, errStopping) {
			err = fmt.Errorf("%w: %w", errStays, err)
		}
		return err
	}
	p.active = false
	return nil
}
