// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/patch/flow"
	"github.com/attune-hpc/attune/controller/sites/object"
)

// finder finds where functions can be patched, and prepares these places. It is for
// one goroutine, which holds the lock of the Sites.
type finder struct {
	builder
	functions *Functions
	known     known
	objects   object.Cache    // nil: files are opened when they are needed
	refused   map[place]error // why entries cannot be patched; nil: it is found out each time
}

// need prepares the entry or the exits of a function, or both.
func (d finder) need(ctx context.Context, fn *function, entry, exits bool) error {
	if exits {
		if err := d.findExits(ctx, fn); err != nil {
			return err
		}
	}
	if !entry || fn.entry != nil {
		return nil
	}
	key := placeOf(fn.Function)
	if err := d.refused[key]; err != nil {
		return err
	}
	err := d.findEntry(ctx, fn)
	if d.refused != nil && errors.Is(err, patch.ErrUnpatchable) {
		d.refused[key] = err
	}
	return err
}

// findEntry prepares the entry of a function.
func (d finder) findEntry(ctx context.Context, fn *function) error {
	o, done, err := d.objects.Open(fn.Image)
	if err != nil {
		return err
	}
	defer done()
	site, code, err := o.Entry(fn.Symbol, fn.Image.Bias)
	if err != nil && !errors.Is(err, patch.ErrUnpatchable) {
		return err
	}
	hook, _ := d.hooks()
	fn.entry, err = d.eitherWay(ctx, fn, o, fn.Symbol.Value, site, err, hook, fn.exits, func(around flow.Surroundings) (patch.Site, error) {
		return patch.Wide(fn.Symbol.Value, code[:min(uint64(len(code)), fn.Symbol.Size)], around, fn.Image.Bias)
	})
	if err != nil {
		return err
	}
	d.inherited(fn, fn.entry)
	return nil
}

// eitherWay prepares a place that is patched by one byte, unless there is a
// reason not to; then by a whole jump, if wide finds that it can be written. A
// jump that reaches into another function is taken where nothing else is left.
func (d finder) eitherWay(ctx context.Context, fn *function, o *object.Object, at uint64, site patch.Site, reason error, hook uint64, others []*spot,
	wide func(around flow.Surroundings) (patch.Site, error),
) (p *spot, err error) {
	var beside error
	if reason == nil {
		if beside, err = o.Beside(fn.Symbol, site, fn.Image.Bias); err != nil {
			return nil, err
		}
	}
	if reason == nil && beside == nil {
		if p, reason = d.spot(ctx, fn.Function, site, hook, others); !errors.Is(reason, patch.ErrUnpatchable) {
			return p, reason
		}
	}
	var whole patch.Site
	around, err := o.Around(fn.Symbol, at)
	if err == nil {
		whole, err = wide(around)
	}
	if err == nil {
		p, err = d.spot(ctx, fn.Function, whole, hook, others)
	}
	if errors.Is(err, patch.ErrUnpatchable) && beside != nil {
		if p, reason = d.spot(ctx, fn.Function, site, hook, others); reason == nil {
			p.beside = fmt.Errorf("%w; nor is a whole jump possible: %w", beside, err)
		}
		if !errors.Is(reason, patch.ErrUnpatchable) {
			return p, reason
		}
	}
	if errors.Is(err, patch.ErrUnpatchable) {
		return nil, fmt.Errorf("%w; nor by a whole jump: %w", reason, err)
	}
	return p, err
}

// spot prepares a place of a function that is far enough from its others: the one
// that was inherited, or a new one.
func (d finder) spot(ctx context.Context, f Function, site patch.Site, hook uint64, others []*spot) (*spot, error) {
	if err := distinct(site, others); err != nil {
		return nil, err
	}
	code, err := d.read(site.Address, len(site.Original))
	if err != nil {
		return nil, err
	}
	if p := d.inherit(site, code, hook); p != nil {
		if p.active {
			_, err = d.functions.reach(f, p.site)
		}
		return p, err
	}
	if err := d.known.apart(site); err != nil {
		return nil, err
	}
	if !bytes.Equal(code, site.Original) {
		return nil, fmt.Errorf("%w: %w", patch.ErrUnpatchable, ErrTouched)
	}
	if mapped, err := d.holds(f); err != nil || !mapped {
		return nil, errors.Join(err, fmt.Errorf("%w: %s is not mapped any more", patch.ErrUnpatchable, f.Image.Name()))
	}
	return d.build(ctx, site, hook)
}

// findExits prepares all exits of a function.
func (d finder) findExits(ctx context.Context, fn *function) error {
	if fn.exits != nil {
		return nil
	}
	_, hook := d.hooks()
	if hook == 0 && d.dmlib != nil {
		return fmt.Errorf("%w: DMLib there serves no exits", patch.ErrUnpatchable)
	}
	o, done, err := d.objects.Open(fn.Image)
	if err != nil {
		return err
	}
	defer done()
	found, _, err := o.Exits(fn.Symbol)
	if err != nil {
		return err
	}
	exits, tails := make([]*spot, 0, len(found)), false
	for i, exit := range found {
		p, err := d.exit(ctx, fn, o, hook, found[i:], append(exits, fn.entry))
		if err != nil {
			return fmt.Errorf("exit at %#x: %w", exit.Address, err)
		}
		exits, tails = append(exits, p), tails || exit.Tail
	}
	fn.exits, fn.tails = exits, tails
	for _, p := range exits {
		d.inherited(fn, p)
	}
	return nil
}

// exit prepares the first exit of those that are left, by one byte, or else by
// a whole jump that takes in what comes before it. done are the others.
func (d finder) exit(ctx context.Context, fn *function, o *object.Object, hook uint64, left []flow.Exit, done []*spot) (*spot, error) {
	exit := left[0]
	code, err := o.CodeAt(exit.Address, patch.SiteBytes)
	if err != nil {
		return nil, err
	}
	site, err := patch.ExamineExit(fn.Image.Address(exit.Address), code, exit)
	if err == nil && len(left) > 1 && left[1].Address < exit.Address+patch.JumpBytes {
		err = fmt.Errorf("%w: it is %d bytes from another one", patch.ErrUnpatchable, left[1].Address-exit.Address)
	}
	return d.eitherWay(ctx, fn, o, exit.Address, site, err, hook, done, func(around flow.Surroundings) (patch.Site, error) {
		return patch.WideExit(exit, around, fn.Image.Bias)
	})
}

// inherited takes over what an inherited place does but measure: the points of
// this process come one by one. What was given back is not done again.
func (d finder) inherited(fn *function, p *spot) {
	if !p.active {
		return
	}
	for _, step := range p.now.Steps {
		if fn.do.has(step.Name) || d.functions.act(KeyOf(fn.Function)) != nil {
			continue
		}
		fn.do.steps = append(fn.do.steps, step)
	}
}

// straight refuses a function that goes back to its first instruction, for what
// is to be done once a call.
func (d finder) straight(fn *function) error {
	o, done, err := d.objects.Open(fn.Image)
	if err != nil {
		return err
	}
	defer done()
	code, err := o.Function(fn.Symbol)
	if err != nil {
		return nil //nolint:nilerr // its size is not known, as that of some written in assembly language
	}
	if at, ok := flow.LoopsBack(code, fn.entry.site.Address-fn.Image.Bias); ok {
		return fmt.Errorf("%w: a branch at %#x leads back to its entry: each turn of that loop would be taken for a call", patch.ErrUnpatchable, at)
	}
	return nil
}
