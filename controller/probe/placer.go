// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"sync"

	"github.com/attune-hpc/attune/controller/budget"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Placer keeps measure points placed in processes. All methods may be called from any
// goroutine.
type Placer struct {
	common  *common
	work    *work
	points  *points
	kernel  *kernel
	tenants *tenants
}

// New returns an empty Placer.
func New(options Options) *Placer {
	options = options.withDefaults()
	p := &Placer{
		common: &common{options: options, log: options.Log.With("component", "probe")},
		work:   newWork(),
		points: &points{known: make(map[uint16]wantedPoint)},
	}
	p.kernel = &kernel{
		common: p.common, work: p.work, points: p.points,
		watches: watchOwners{of: make(map[watchKey]*host)}, standing: make(map[uint16]heldAttachment),
	}
	p.tenants = &tenants{common: p.common, kernel: p.kernel, work: p.work, of: make(map[uint64]*tenant)}
	p.kernel.recall = p.tenants.recall
	return p
}

// Add places a point in every process that it is meant for, also in those that
// come later. It returns at once; Status tells the outcome.
func (p *Placer) Add(index uint16, spec *attunev1.MeasurePoint) {
	p.points.add(index, spec)
	p.tenants.askFor(wish{index: index, spec: spec})
}

// Remove takes a point out of every process. It returns at once, with the
// point, nil if there was none.
func (p *Placer) Remove(index uint16) *attunev1.MeasurePoint {
	spec := p.points.remove(index)
	p.kernel.unstand(index)
	if spec != nil {
		p.tenants.askFor(wish{index: index, spec: spec, gone: true})
	}
	return spec
}

// ForAll counts the points that are meant for every process, whichever comes.
func (p *Placer) ForAll() int { return p.points.count(meantForAll) }

// WantsLibrary says whether there are points that are meant for a process and
// that DMLib could serve there.
func (p *Placer) WantsLibrary(handle uint64) bool {
	return p.points.count(func(spec *attunev1.MeasurePoint) bool {
		return wants(spec, handle) && spec.GetUsdt() == nil
	}) > 0
}

// Points returns how many points there are.
func (p *Placer) Points() int {
	return p.points.count(func(*attunev1.MeasurePoint) bool { return true })
}

// Admit takes a process in and places all points that are meant for it. held
// says that it waits in the start gate: nothing runs in it, so that its GOT
// can be written from outside. Admit returns when all is placed. A process that was
// admitted before DMLib came to it is admitted again with it: its points move.
func (p *Placer) Admit(ctx context.Context, process Process, held bool) {
	t := &tenant{points: p.points, work: p.work, handOver: p.tenants.handOver, occupancy: occupancy{
		mechanisms: newMechanisms(p.common, p.kernel, process), placed: make(map[uint16]*placement),
		degraded: make(degradations), recalled: make(map[uint16]recalled), refused: make(map[uint16]refusal),
	}}
	if before := p.tenants.at(process.Handle()); before != nil {
		t.moved = before.moveOut() // it stays until what it counted is read
	}
	t.show()
	p.tenants.add(t)
	if t.placeAll(ctx, held) {
		return
	}
	// The process waits no longer; the rest comes at its safe points.
	p.work.begin(func() { t.placeAll(p.work.ctx, false) })
}

// Refresh looks again where a process has loaded objects since: points on
// functions may have more to watch. It returns at once.
func (p *Placer) Refresh(handle uint64) {
	if t := p.tenants.at(handle); t != nil {
		p.work.begin(func() { t.placeAll(p.work.ctx, false) })
	}
}

// Release forgets a process that has ended.
func (p *Placer) Release(handle uint64) {
	if t := p.tenants.remove(handle); t != nil {
		t.forget()
	}
}

// Withdraw takes all points out of all processes and gives their GOT back, as
// far as they come to a safe point before ctx ends. Status hears nothing of it:
// the points were in place until the end.
func (p *Placer) Withdraw(ctx context.Context) {
	p.points.removeAll()
	p.kernel.unstand()
	var all sync.WaitGroup
	for _, t := range p.tenants.all() {
		all.Go(func() { t.removeAll(ctx) })
	}
	all.Wait()
}

// Close stops placing and waits for what is under way. It takes nothing out.
func (p *Placer) Close() {
	p.work.close()
	p.kernel.unstand()
}

// Uprobed calls f for every point whose hits a uprobe sums up in a process. It
// does not wait for placing under way.
func (p *Placer) Uprobed(f func(handle uint64, pid int, point uint16)) {
	for _, t := range p.tenants.all() {
		for _, point := range t.view.Load().uprobed {
			if p.kernel.watches.has(t.host, point) {
				f(t.process.Handle(), t.process.PID(), point)
			}
		}
	}
}

// Costs returns the estimated cost per hit in nanoseconds, by point, in a
// process. The map must not be modified. It does not wait for placing.
func (p *Placer) Costs(handle uint64) map[uint16]float64 {
	if t := p.tenants.at(handle); t != nil {
		return t.view.Load().costs
	}
	return nil
}

// Loads lists the points of a process as the budget sees them, without hits. It
// does not wait for placing.
func (p *Placer) Loads(handle uint64) []budget.Load {
	if t := p.tenants.at(handle); t != nil {
		return t.view.Load().loads
	}
	return nil
}

// Degrade has less or more of a point delivered in one process. It returns at
// once; Status tells when it is done.
func (p *Placer) Degrade(handle uint64, step budget.Step) {
	t := p.tenants.at(handle)
	spec, _ := p.points.at(step.Point)
	if t != nil && spec != nil {
		p.work.begin(func() { t.degrade(p.work.ctx, spec, step) })
	}
}
