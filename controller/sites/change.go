// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/controller/patch"
)

// function returns what is known of a function. The caller holds s.mu.
func (s *Sites) function(f Function) *function {
	fn := s.known[placeOf(f)]
	if fn == nil {
		fn = &function{Function: f}
		s.known[placeOf(f)] = fn
	}
	return fn
}

// need prepares the entry or the exits of a function, or both. The caller holds
// s.mu.
func (s *Sites) need(ctx context.Context, w writer, fn *function, entry, exits bool) error {
	if exits {
		if err := s.findExits(ctx, w, fn); err != nil {
			return err
		}
	}
	if !entry || fn.entry != nil {
		return nil
	}
	if w.seen == nil {
		return s.findEntry(ctx, w, fn)
	}
	key := placeOf(fn.Function)
	if err := w.seen.refused[key]; err != nil {
		return err
	}
	err := s.findEntry(ctx, w, fn)
	if errors.Is(err, patch.ErrUnpatchable) {
		w.seen.refused[key] = err
	}
	return err
}

// findEntry prepares the entry of a function. The caller holds s.mu.
func (s *Sites) findEntry(ctx context.Context, w writer, fn *function) error {
	o, done, err := w.object(fn.Image)
	if err != nil {
		return err
	}
	defer done()
	site, code, err := o.entry(fn.Function)
	if err != nil && !errors.Is(err, patch.ErrUnpatchable) {
		return err
	}
	hook, _ := w.hooks()
	fn.entry, err = s.eitherWay(ctx, w, fn, o, site, err, hook, fn.exits, func() (patch.Site, error) {
		around, err := o.around(fn.Symbol, fn.Symbol.Value)
		if err != nil {
			return patch.Site{}, err
		}
		return patch.Wide(fn.Symbol.Value, code[:min(uint64(len(code)), fn.Symbol.Size)], around, fn.Image.Bias)
	})
	if err != nil {
		return err
	}
	s.inherited(fn, fn.entry)
	return nil
}

// eitherWay prepares a place that is patched by one byte, unless there is a
// reason not to; then by a whole jump, if wide finds that it can be written. A
// jump that reaches into another function is taken where nothing else is left.
func (s *Sites) eitherWay(ctx context.Context, w writer, fn *function, o *object, site patch.Site, reason error, hook uint64, others []*spot,
	wide func() (patch.Site, error),
) (p *spot, err error) {
	var beside error
	if reason == nil {
		if beside, err = o.beside(fn.Function, site); err != nil {
			return nil, err
		}
	}
	if reason == nil && beside == nil {
		if p, reason = s.away(ctx, w, fn, site, hook, others); !errors.Is(reason, patch.ErrUnpatchable) {
			return p, reason
		}
	}
	whole, err := wide()
	if err == nil && w.rewriter == nil {
		err = errNoRewriter
	}
	if err == nil {
		p, err = s.away(ctx, w, fn, whole, hook, others)
	}
	if errors.Is(err, patch.ErrUnpatchable) && beside != nil {
		if p, reason = s.away(ctx, w, fn, site, hook, others); reason == nil {
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

// away prepares a place that is far enough from the others.
func (s *Sites) away(ctx context.Context, w writer, fn *function, site patch.Site, hook uint64, others []*spot) (*spot, error) {
	if err := distinct(site, others); err != nil {
		return nil, err
	}
	return s.spot(ctx, w, fn.Function, site, hook)
}

// spot prepares a place of a function: the one that was inherited, or a new
// one.
func (s *Sites) spot(ctx context.Context, w writer, f Function, site patch.Site, hook uint64) (*spot, error) {
	code, err := w.read(site.Address, len(site.Original))
	if err != nil {
		return nil, err
	}
	if p := s.inherit(w, site, code, hook); p != nil {
		if p.active {
			_, err = s.functions.reach(f, p.site)
		}
		return p, err
	}
	if err := s.apart(site); err != nil {
		return nil, err
	}
	if !bytes.Equal(code, site.Original) {
		return nil, fmt.Errorf("%w: %w", patch.ErrUnpatchable, ErrTouched)
	}
	if mapped, err := w.holds(f); err != nil || !mapped {
		return nil, errors.Join(err, fmt.Errorf("%w: %s is not mapped any more", patch.ErrUnpatchable, f.Image.Name()))
	}
	return s.build(ctx, w, site, hook)
}

// apart refuses a place whose patch would change another one's jump.
func (s *Sites) apart(site patch.Site) error {
	for _, fn := range s.known {
		for _, other := range fn.all() {
			if other.active && other.site.Address != site.Address && other.site.Overlaps(site) {
				return fmt.Errorf("%w: another patch is %d bytes away", patch.ErrUnpatchable, int64(other.site.Address-site.Address))
			}
		}
	}
	return nil
}

// all places of a function that were prepared.
func (fn *function) all() (places []*spot) {
	places = slices.Clone(fn.exits)
	if fn.entry != nil {
		places = append(places, fn.entry)
	}
	return places
}

// spots are those at which something is done.
func (fn *function) spots(do doing) (used []*spot) {
	if do.any(false) {
		used = slices.Clone(fn.exits)
	}
	if do.any(true) {
		used = append(used, fn.entry)
	}
	return used
}

// change makes something else be done at a function from now on. Exits come
// first and go last: an exit that finds no open call is nothing, an open call
// without an exit is lost. If the error is not nil all is as it was. The caller
// holds s.mu.
func (s *Sites) change(ctx context.Context, w writer, fn *function, do doing) error {
	before := fn.do
	err := s.turn(ctx, w, fn, do)
	if err == nil || errors.Is(err, errStays) {
		fn.do = do
		return err
	}
	if back := s.turn(context.WithoutCancel(ctx), w, fn, before); back != nil {
		err = errors.Join(err, fmt.Errorf("and it could not be taken back: %w", back))
	}
	return err
}

func (s *Sites) turn(ctx context.Context, w writer, fn *function, do doing) error {
	mapped, err := w.holds(fn.Function)
	if err != nil {
		return err
	}
	places := fn.all()
	if !do.any(true) { // the entry goes first
		slices.Reverse(places)
	}
	var stays error
	for _, p := range places {
		err := s.turnOne(ctx, w, fn.Function, p, do.at(p == fn.entry), mapped)
		switch {
		case errors.Is(err, errStays):
			stays = fmt.Errorf("%s: %w", fn.Symbol.Name, err)
		case err != nil:
			return fmt.Errorf("%s: %w", fn.Symbol.Name, err)
		}
	}
	return stays
}

// errStays: what was done at a function is not done any more, but the jump is
// still there. [Sites.Refresh] tries again.
var errStays = errors.New("the jump stays for now, and does nothing")

// turnOne makes one place do something else: first where the jump leads, then
// the jump itself. mapped is false if the code is not there any more.
func (s *Sites) turnOne(ctx context.Context, w writer, f Function, p *spot, do patch.Program, mapped bool) error {
	wanted := len(do.Numbers)+len(do.Steps) > 0
	if wanted && !mapped {
		return fmt.Errorf("%w: it was unloaded", patch.ErrUnpatchable)
	}
	if do.Key() != p.now.Key() {
		if err := s.lead(ctx, w, p, do); err != nil {
			return err
		}
	}
	switch {
	case wanted:
		if err := s.apart(p.site); err != nil {
			return err
		}
		giveBack, err := s.functions.reach(f, p.site)
		if err != nil {
			return err
		}
		if err = p.activate(ctx, w); !p.active {
			giveBack()
		}
		return err
	case mapped && w.seen != nil && p.site.Wide():
		w.seen.leaving = append(w.seen.leaving, p)
		return nil
	case mapped:
		if err := p.deactivate(ctx, w); errors.Is(err, errStopping) {
			return fmt.Errorf("%w: %w", errStays, err)
		} else if err != nil {
			return err
		}
		return nil
	}
	p.active = false
	return nil
}

// bytes are what the journal keeps of a place of a function.
func (p *spot) bytes(f Function) Bytes {
	return Bytes{
		Address: p.site.Address, Device: f.Image.Device, Inode: f.Image.Inode,
		FileOffset: f.Symbol.FileOffset + p.site.Address - f.address(),
		Old:        p.site.Original, New: p.site.Patched(),
	}
}
