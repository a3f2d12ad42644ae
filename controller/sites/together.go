// SPDX-License-Identifier: Apache-2.0

package sites

import (
	"bytes"
	"context"
	"slices"

	"github.com/attune-hpc/attune/internal/proc"
)

// Lead has the whole jumps written that the entries of functions need, in one stop of
// the threads; until something is done there they lead to what the code does anyway.
// It is a help, as [Batch.Reserve] is. Where nothing comes to be done the jump is taken
// out when the batch ends.
func (b *Batch) Lead(ctx context.Context, functions []Function) {
	if b.err != nil || b.w.rewriter == nil {
		return
	}
	s := b.sites
	s.mu.Lock()
	defer s.mu.Unlock()
	var led []*spot
	var giveBack []func()
	for _, f := range functions {
		fn := s.function(f)
		if s.functions.kernel(KeyOf(f)) || s.need(ctx, b.w, fn, true, false) != nil {
			continue
		}
		p := fn.entry
		if !p.site.Wide() || p.active || slices.Contains(led, p) || s.apart(p.site) != nil {
			continue
		}
		if back, err := s.functions.reach(f, p.site); err == nil {
			led, giveBack = append(led, p), append(giveBack, back)
		}
	}
	if len(led) > 1 { // else it is as well done when it is needed
		s.exchangeAll(ctx, b.w, led, true)
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
	leaving := b.w.seen.leaving
	b.w.seen.leaving = nil
	b.takeOut(leaving)
}

// takeOut takes the whole jumps of places out at which nothing is done.
func (b *Batch) takeOut(places []*spot) {
	s := b.sites
	s.mu.Lock()
	defer s.mu.Unlock()
	var idle []*spot
	for _, p := range places {
		if p.active && !p.busy() && !slices.Contains(idle, p) {
			idle = append(idle, p)
		}
	}
	if len(idle) > 0 {
		s.exchangeAll(context.Background(), b.w, idle, false)
	}
}

// exchangeAll writes the whole jumps of places, or takes them out, in one stop, and
// notes what stands there then. The caller holds s.mu.
func (s *Sites) exchangeAll(ctx context.Context, w writer, places []*spot, in bool) {
	changes := make([]proc.Change, 0, len(places))
	for _, p := range places {
		from, to := p.site.Original, p.site.Patched()
		if !in {
			from, to = to, from
		}
		_, last := differences(from, to)
		changes = append(changes, proc.Change{Address: p.site.Address, From: from[:last+1], To: to[:last+1]})
	}
	_ = w.rewriter.Rewrite(ctx, changes...) // what stands there says more
	for _, p := range places {
		code, err := w.read(p.site.Address, len(p.site.Original))
		switch {
		case err != nil:
		case bytes.Equal(code, p.site.Original):
			p.active = false
		case bytes.Equal(code, p.site.Patched()):
			p.active = true
		}
	}
}

// busy says whether something is done at a place.
func (p *spot) busy() bool { return len(p.now.Numbers)+len(p.now.Steps) > 0 }
