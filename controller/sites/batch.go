// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
)

// Batch measures at many functions of a process one after another: what is read
// of the process for the first does for all, and [Batch.Reserve] has memory for
// all mapped at one safe point. It is for one goroutine and for some
// milliseconds; others may use its Sites meanwhile. The caller closes it.
type Batch struct {
	sites *Sites
	w     writer
	err   error   // why there is no writer
	led   []*spot // with whole jumps that nothing may come to be done at
}

// seen is what a batch keeps of a process from one function to the next.
type seen struct {
	objects  map[file]*object // those that are open
	mappings []objfile.Mapping
	stale    time.Time       // when they are to be read again
	refused  map[place]error // why entries cannot be patched
	leaving  []*spot         // with whole jumps at which nothing is done any more
}

// mappingsAge is how old they may be, in multiples of the time that reading them takes:
// a library that is unloaded meanwhile must not be written to for long.
const mappingsAge = 20

// file tells files apart.
type file struct{ device, inode uint64 }

// object opens the file of an image, for the whole of a batch if there is one.
// The caller calls done when it needs it no more.
func (w writer) object(image objfile.Image) (o *object, done func(), err error) {
	key := file{image.Device, image.Inode}
	if w.seen != nil && w.seen.objects[key] != nil {
		return w.seen.objects[key], func() {}, nil
	}
	if o, err = openObject(image); err != nil {
		return nil, nil, err
	}
	if w.seen == nil {
		return o, func() { _ = o.Close() }, nil // read only
	}
	if w.seen.objects == nil {
		w.seen.objects = make(map[file]*object)
	}
	w.seen.objects[key] = o
	return o, func() {}, nil
}

// Batch begins one.
func (s *Sites) Batch() *Batch {
	b := &Batch{sites: s}
	if b.w, b.err = s.writer(); b.err == nil && b.w.memory == nil {
		b.err = ErrNoDMLib
	}
	b.w.seen = &seen{refused: make(map[place]error)}
	return b
}

// Close ends the batch.
func (b *Batch) Close() {
	b.takeOut(slices.Concat(b.led, b.w.seen.leaving))
	for _, o := range b.w.seen.objects {
		_ = o.Close() // read only
	}
}

// Measure is [Sites.Measure].
func (b *Batch) Measure(ctx context.Context, f Function, number int, at Where) error {
	b.sites.mu.Lock()
	defer b.sites.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	return b.sites.measure(ctx, b.w, f, number, at)
}

// Reserve has the memory mapped that patches of the entries of functions need.
// It is a help: what it does not get, Measure asks for, and says what is wrong.
func (b *Batch) Reserve(ctx context.Context, functions []Function) {
	if b.err != nil {
		return
	}
	s := b.sites
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := s.wanted(b.w, functions)
	mapped := make([]bool, len(wanted))
	var group errgroup.Group
	group.SetLimit(shm.MailboxSize - 4) // leaves some to tuning actions
	for i, arena := range wanted {
		group.Go(func() error {
			mapped[i] = b.w.mapArena(ctx, arena) == nil
			return nil
		})
	}
	_ = group.Wait() // none returns an error
	for i, arena := range wanted {
		if mapped[i] {
			s.arenas = append(s.arenas, arena)
		}
	}
}

// wanted lists the arenas that functions need and that are not mapped yet. The
// caller holds s.mu.
func (s *Sites) wanted(w writer, functions []Function) []*patch.Arena {
	arenas, used := slices.Clone(s.arenas), regionsOnce(w.pid)
	for _, f := range functions {
		if fn := s.known[placeOf(f)]; fn != nil && fn.entry != nil {
			continue
		}
		site, err := w.examine(f)
		if err != nil {
			continue
		}
		if _, arena, err := choose(site, arenas, used); err == nil && !slices.Contains(arenas, arena) {
			arenas = append(arenas, arena)
		}
	}
	return arenas[len(s.arenas):]
}

// examine examines the entry of a function for a patch of one byte.
func (w writer) examine(f Function) (patch.Site, error) {
	o, done, err := w.object(f.Image)
	if err != nil {
		return patch.Site{}, err
	}
	defer done()
	site, _, err := o.entry(f)
	return site, err
}

// choose finds a landing for a site: in one of the arenas, or in a new one that
// could be mapped.
func choose(site patch.Site, arenas []*patch.Arena, used func() ([]patch.Region, error)) (landed patch.Site, arena *patch.Arena, err error) {
	landed, err = site.Land(func(landing uint64) error {
		for _, arena = range arenas {
			if arena.Holds(landing) {
				return arena.Vacant(landing)
			}
		}
		start, end := patch.Stretch(landing)
		arena = &patch.Arena{Start: start, End: end}
		regions, err := used()
		if err != nil || abandoned(arena, regions) {
			return err // mapArena knows whether it is
		}
		return patch.Placeable(start, end, regions)
	})
	return landed, arena, err
}

// regionsOnce reads what of an address space is in use when that is asked for.
func regionsOnce(pid int) func() ([]patch.Region, error) {
	return sync.OnceValues(func() ([]patch.Region, error) { return regions(pid) })
}

// Measure counts or records the calls of a function under a number of
// [Functions.Number], and no longer where that is nowhere. The local point must
// be set before, and cleared after. If the error is not nil nothing has changed.
func (s *Sites) Measure(ctx context.Context, f Function, number int, at Where) error {
	b := s.Batch()
	defer b.Close()
	return b.Measure(ctx, f, number, at)
}

// measure is Measure. The caller holds s.mu.
func (s *Sites) measure(ctx context.Context, w writer, f Function, number int, at Where) error {
	fn, key := s.function(f), KeyOf(f)
	before := fn.do.measures(uint32(number))
	switch {
	case !at.Entry && !at.Exits:
	case !before:
		if err := s.functions.measures(key); err != nil {
			return err
		}
	case s.functions.kernel(key):
		return ErrWatched
	}
	err := s.remeasure(ctx, w, fn, number, at)
	if (before || at.Entry || at.Exits) && !fn.do.measures(uint32(number)) {
		s.functions.ends(key, 1)
	}
	return err
}

// remeasure is measure for a function that may be patched. The caller holds s.mu.
func (s *Sites) remeasure(ctx context.Context, w writer, fn *function, number int, at Where) error {
	if err := s.need(ctx, w, fn, at.Entry, at.Exits); err != nil {
		return err
	}
	if err := fn.risk(at); err != nil && !at.Beside {
		return err
	}
	if err := fn.sees(w, at); err != nil {
		return err
	}
	return s.change(ctx, w, fn, fn.do.measured(uint32(number), at.Entry, at.Exits))
}

// sees refuses what a patch of a function would take wrongly.
func (fn *function) sees(w writer, at Where) error {
	switch {
	case fn.tails && at.Exits && at.Result:
		return errTail
	case fn.tails && at.Exits && at.Entry:
		return errTailTimed
	case at.Exits && at.Entry:
		return fn.straight(w)
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
