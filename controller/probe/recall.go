// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"time"

	"github.com/attune-hpc/attune/controller/sites"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// recalled is a point that is out of a process until patches serve it again.
type recalled struct {
	spec  *attunev1.MeasurePoint
	since time.Time
	late  time.Duration // of its placement before
}

// giveBack lets functions be patched again whose uprobes are being taken out, and
// has patches serve again what gave way to uprobes that nobody needs any more. It
// returns at once; the lock of a process may be held.
func (p *Placer) giveBack(kept *sites.Kept) {
	p.mu.Lock()
	p.leaving = append(p.leaving, kept)
	p.mu.Unlock()
	p.begin(func() {
		p.returnAll()
		p.recall()
	})
}

// returnAll waits until the kernel has taken out all breakpoints of what leaves:
// before, a patch would find one in its place.
func (p *Placer) returnAll() {
	p.returning.Lock() // a caller finds all returned that left before its call
	defer p.returning.Unlock()
	p.mu.Lock()
	leaving := p.leaving
	p.leaving = nil
	p.mu.Unlock()
	if len(leaving) == 0 {
		return
	}
	if uprobes, err := p.options.Uprobes(); err == nil && uprobes.Settle(p.ctx) != nil {
		return // the Placer is closed
	}
	for _, kept := range leaving {
		kept.Return()
	}
}

// recall has patches serve the points again that gave way to uprobes of others. All
// go out of all processes before one of them is placed again: their own uprobes are
// in the way, too. What is called meanwhile is not counted, and the points say for
// how long.
func (p *Placer) recall() {
	p.mu.Lock()
	tenants := make([]*tenant, 0, len(p.processes))
	for _, t := range p.processes {
		tenants = append(tenants, t)
	}
	p.mu.Unlock()
	again := make(map[*tenant][]wish)
	for _, t := range tenants {
		if wishes := t.leaveKernel(); len(wishes) > 0 {
			again[t] = wishes
		}
	}
	if len(again) == 0 {
		return
	}
	p.returnAll()
	for t, wishes := range again {
		for _, w := range wishes {
			t.ask(w)
		}
	}
}

// leaveKernel takes the points out that patches can serve again, and returns them.
func (t *tenant) leaveKernel() (wishes []wish) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for index, p := range t.placed {
		if !p.yielding || t.gone || p.needed() {
			continue
		}
		wishes = append(wishes, wish{index: index, spec: p.spec})
	}
	for _, w := range wishes {
		t.leave(w.index)
	}
	return wishes
}

// leave takes a point out that the kernel serves, until it is placed again. The
// caller holds t.mu.
func (t *tenant) leave(index uint16) {
	p := t.placed[index]
	t.recalled[index] = recalled{spec: p.spec, since: time.Now(), late: p.late}
	t.placer.unstand(index)
	t.takeOut(t.placer.ctx, index)
}

// needed says whether another point needs a uprobe where this one has some.
func (p *placement) needed() bool {
	for _, a := range p.attachments {
		if !a.kept.Idle() {
			return true
		}
	}
	return false
}

// settleRecalled ends the absence of a point that is placed again. One that the
// kernel serves after all stays there, unless it still gives way to another one.
// The caller holds t.mu.
func (t *tenant) settleRecalled(index uint16, p *placement) (was bool) {
	r, was := t.recalled[index]
	if was {
		delete(t.recalled, index)
		p.late, p.preferred, p.yielding = r.late+time.Since(r.since), false, p.yielding && p.needed()
	}
	return was
}
