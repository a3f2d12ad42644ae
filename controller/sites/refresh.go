// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
)

// Stale says whether a library whose functions are patched, or should be, was
// unloaded or loaded again, so that it is time for [Sites.Refresh] and for
// measuring again what was measured there. It reads a few bytes per patch.
func (s *Sites) Stale() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) == 0 {
		return false
	}
	w, err := s.writer()
	if err != nil {
		return false
	}
	waiting := make(map[Key]bool)
	for _, fn := range s.known {
		for _, p := range fn.all() {
			if p.active && (!w.stands(p.site) || !slices.Contains(fn.spots(fn.do), p)) {
				return true
			}
		}
		if fn.waits() {
			waiting[fileOf(fn.Function)] = true
		}
	}
	return len(waiting) > 0 && s.anyMapped(waiting)
}

// stands says whether a patch is in the code.
func (w writer) stands(site patch.Site) bool {
	code, err := w.read(site.Address, len(site.Original))
	return err == nil && bytes.Equal(code, site.Patched())
}

// waits says whether something should be done at a function that is not mapped.
func (fn *function) waits() bool {
	active := func(p *spot) bool { return p.active }
	return len(fn.spots(fn.do)) > 0 && !slices.ContainsFunc(fn.all(), active)
}

// fileOf is the key of the file that holds a function.
func fileOf(f Function) Key { return Key{Device: f.Image.Device, Inode: f.Image.Inode} }

func (s *Sites) anyMapped(files map[Key]bool) bool {
	mappings, err := objfile.Mappings(s.process.PID())
	return err == nil && slices.ContainsFunc(mappings, func(m objfile.Mapping) bool {
		return m.Exec && files[Key{Device: m.Device, Inode: m.Inode}]
	})
}

// Refresh patches again what was unloaded and loaded again, wherever it lies
// now. What is not mapped keeps its actions for the time when it is. Functions
// at another address are to be measured anew.
func (s *Sites) Refresh(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, err := s.writer()
	if err != nil {
		return err
	}
	images, err := s.process.Images()
	if err != nil {
		return err
	}
	var errs []error
	for _, fn := range slices.Collect(maps.Values(s.known)) {
		if err := s.revive(ctx, w, fn, images); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", fn.Symbol.Name, err))
		}
	}
	return errors.Join(errs...)
}

// revive brings what is done at one function up to date with what is mapped.
func (s *Sites) revive(ctx context.Context, w writer, fn *function, images []objfile.Image) error {
	mapped, err := w.holds(fn.Function)
	if err != nil {
		return err
	}
	if mapped {
		return s.turn(ctx, w, fn, fn.do)
	}
	for _, p := range fn.all() {
		p.active = false // it went with the mapping
	}
	i := slices.IndexFunc(images, func(image objfile.Image) bool {
		return image.Device == fn.Image.Device && image.Inode == fn.Image.Inode
	})
	if i < 0 {
		return nil
	}
	if len(fn.do.steps) > 0 {
		if err := s.move(ctx, w, fn, images[i]); err != nil {
			return err
		}
	}
	s.functions.ends(KeyOf(fn.Function), len(fn.do.numbers()))
	delete(s.known, placeOf(fn.Function))
	return nil
}

// move does the actions on a function where its file is mapped now.
func (s *Sites) move(ctx context.Context, w writer, fn *function, to objfile.Image) error {
	moved := s.function(Function{Image: to, Symbol: fn.Symbol})
	do := moved.do
	do.steps = fn.do.steps
	if err := s.need(ctx, w, moved, do.any(true), do.any(false)); err != nil {
		return err
	}
	return s.change(ctx, w, moved, do)
}
