// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites/object"
)

// Batch measures at many functions of a process one after another: what is read
// of the process for the first does for all, and [Batch.Reserve] has memory for
// all mapped at one safe point. It is for one goroutine and for some
// milliseconds; others may use its Sites meanwhile. The caller closes it.
type Batch struct {
	sites *Sites
	c     *changer
	err   error   // why it cannot measure
	led   []*spot // with whole jumps that nothing may come to be done at
}

// Batch begins one.
func (s *Sites) Batch() *Batch {
	b := &Batch{sites: s}
	if b.c, b.err = s.changer(); b.err == nil && b.c.dmlib == nil {
		b.err = ErrNoDMLib
	}
	b.c.mapped, b.c.objects, b.c.refused = new(mapped), make(object.Cache), make(map[place]error)
	b.c.together = true
	return b
}

// Measure counts or records the calls of a function under a number of
// [Sites.Number], and no longer where that is nowhere. The local point must
// be set before, and cleared after. If the error is not nil nothing has changed.
func (s *Sites) Measure(ctx context.Context, f Function, number int, at Where) error {
	b := s.Batch()
	defer b.Close()
	return b.Measure(ctx, f, number, at)
}

// Close ends the batch.
func (b *Batch) Close() {
	b.takeOut(slices.Concat(b.led, b.c.leaving))
	b.c.objects.Close()
}

// Measure is [Sites.Measure].
func (b *Batch) Measure(ctx context.Context, f Function, number int, at Where) error {
	b.sites.mu.Lock()
	defer b.sites.mu.Unlock()
	if b.err != nil {
		return b.err
	}
	return b.c.measure(ctx, f, number, at)
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
	wanted := b.c.unmapped(functions)
	mapped := make([]bool, len(wanted))
	var group errgroup.Group
	group.SetLimit(shm.MailboxShare)
	for i, arena := range wanted {
		group.Go(func() error {
			mapped[i] = b.c.mapArena(ctx, arena) == nil
			return nil
		})
	}
	_ = group.Wait() // none returns an error
	b.c.mapped.reread()
	for i, arena := range wanted {
		if mapped[i] {
			s.memory.arenas = append(s.memory.arenas, arena)
		}
	}
}

// unmapped lists the arenas that patches of the entries of functions need and that are
// not mapped yet.
func (c *changer) unmapped(functions []Function) []*patch.Arena {
	arenas := slices.Clone(c.memory.arenas)
	for _, f := range functions {
		if fn := c.known[placeOf(f)]; fn != nil && fn.entry != nil {
			continue
		}
		o, done, err := c.objects.Open(f.Image)
		if err != nil {
			continue
		}
		site, _, err := o.Entry(f.Symbol, f.Image.Bias)
		done()
		if err != nil {
			continue
		}
		if _, arena, err := choose(site, arenas, func() ([]patch.Region, error) { return c.mapped.regions(c.process.PID()) }); err == nil && !slices.Contains(arenas, arena) {
			arenas = append(arenas, arena)
		}
	}
	return arenas[len(c.memory.arenas):]
}

// Lead has the whole jumps written that the entries of functions need, in one stop of
// the threads; until something is done there they lead to what the code does anyway.
// It is a help, as [Batch.Reserve] is. Where nothing comes to be done the jump is taken
// out when the batch ends.
func (b *Batch) Lead(ctx context.Context, functions []Function) {
	if b.err != nil {
		return
	}
	b.sites.mu.Lock()
	defer b.sites.mu.Unlock()
	c := b.c
	var led []*spot
	var giveBack []func()
	for _, f := range functions {
		fn := c.known.at(f)
		if c.functions.kernel(KeyOf(f)) || c.need(ctx, fn, true, false) != nil {
			continue
		}
		p := fn.entry
		if !p.site.Wide() || p.active || slices.Contains(led, p) || c.known.apart(p.site) != nil {
			continue
		}
		if back, err := c.functions.reach(f, p.site); err == nil {
			led, giveBack = append(led, p), append(giveBack, back)
		}
	}
	if len(led) > 1 { // else it is as well done when it is needed
		exchangeAll(ctx, c.writer, led, true)
	}
	for i, p := range led {
		if !p.active {
			giveBack[i]()
		}
	}
	b.led = append(b.led, led...)
}

// Leave takes out, in one stop, the whole jumps at which nothing is done any more since
// the batch has begun. Those that it cannot take out [Sites.Refresh] tries again.
func (b *Batch) Leave() {
	leaving := b.c.leaving
	b.c.leaving = nil
	b.takeOut(leaving)
}

// takeOut takes the whole jumps of places out at which nothing is done.
func (b *Batch) takeOut(places []*spot) {
	b.sites.mu.Lock()
	defer b.sites.mu.Unlock()
	var idle []*spot
	for _, p := range places {
		if p.active && p.now.Idle() && !slices.Contains(idle, p) {
			idle = append(idle, p)
		}
	}
	if len(idle) > 0 {
		exchangeAll(context.Background(), b.c.writer, idle, false)
	}
}
