// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	w, err := writerOf(s.process)
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
	c, err := s.changer()
	if err != nil {
		return err
	}
	images, err := s.process.Images()
	if err != nil {
		return err
	}
	var errs []error
	for _, fn := range slices.Collect(maps.Values(s.known)) {
		if err := c.revive(ctx, fn, images); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", fn.Symbol.Name, err))
		}
	}
	return errors.Join(errs...)
}

// revive brings what is done at one function up to date with what is mapped.
func (c *changer) revive(ctx context.Context, fn *function, images []objfile.Image) error {
	mapped, err := c.holds(fn.Function)
	if err != nil {
		return err
	}
	if mapped {
		return c.turn(ctx, fn, fn.do)
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
		if err := c.move(ctx, fn, images[i]); err != nil {
			return err
		}
	}
	c.functions.ends(KeyOf(fn.Function), len(fn.do.numbers()))
	delete(c.known, placeOf(fn.Function))
	return nil
}

// move does the actions on a function where its file is mapped now.
func (c *changer) move(ctx context.Context, fn *function, to objfile.Image) error {
	moved := c.known.at(Function{Image: to, Symbol: fn.Symbol})
	do := moved.do
	do.steps = fn.do.steps
	if err := c.need(ctx, moved, do.any(true), do.any(false)); err != nil {
		return err
	}
	return c.change(ctx, moved, do)
}
