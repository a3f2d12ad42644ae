// SPDX-License-Identifier: Apache-2.0

package entry

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
	site, err := examine(fn.Function)
	if err != nil {
		return err
	}
	hook, _ := w.hooks()
	if fn.entry, err = s.spot(ctx, w, fn.Function, site, hook); err != nil {
		return err
	}
	s.inherited(fn, fn.entry)
	return nil
}

// examine reads the code of a function as its file has it.
func examine(f Function) (patch.Site, error) {
	file, err := f.Image.Open()
	if err != nil {
		return patch.Site{}, err
	}
	defer func() { _ = file.Close() }() // read only
	if file.IsGo() {
		return patch.Site{}, fmt.Errorf("%w: %s is Go code, whose stacks have no room", patch.ErrUnpatchable, f.Image.Name())
	}
	code, err := file.Code(f.Symbol, patch.SiteBytes)
	if err != nil {
		return patch.Site{}, err
	}
	return patch.Examine(f.address(), code)
}

// spot prepares a place of a function: the one that was inherited, or a new
// one.
func (s *Sites) spot(ctx context.Context, w writer, f Function, site patch.Site, hook uint64) (*spot, error) {
	code, err := w.read(site.Address, len(site.Original))
	if err != nil {
		return nil, err
	}
	if p := s.inherit(w, site, code, hook); p != nil {
		return p, nil
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
	if err == nil {
		fn.do = do
		return nil
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
	for _, p := range places {
		if err := s.turnOne(ctx, w, p, do.at(p == fn.entry), mapped); err != nil {
			return fmt.Errorf("%s: %w", fn.Symbol.Name, err)
		}
	}
	return nil
}

// turnOne makes one place do something else: first where the jump leads, then
// the jump itself. mapped is false if the code is not there any more.
func (s *Sites) turnOne(ctx context.Context, w writer, p *spot, do patch.Program, mapped bool) error {
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
		return p.activate(w)
	case mapped:
		return p.deactivate(w)
	}
	p.active = false
	return nil
}

// byte is what the journal keeps of a place of a function.
func (p *spot) byte(f Function) Byte {
	return Byte{
		Address: p.site.Address, Device: f.Image.Device, Inode: f.Image.Inode,
		FileOffset: f.Symbol.FileOffset + p.site.Address - f.address(),
		Offset:     p.site.Changed(), Old: p.site.Original, New: p.site.Patched(),
	}
}
