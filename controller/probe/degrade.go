// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/sites"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// degradation is what the overhead budget leaves of a point in one process.
type degradation struct {
	spec   *attunev1.MeasurePoint // tells it from an earlier point of the same index
	level  budget.Level
	reason string
	// before is the placement of a point that is off.
	before *placement
}

// Loads lists the points of a process as the budget sees them, without hits. It
// does not wait for placing.
func (p *Placer) Loads(handle uint64) []budget.Load {
	p.mu.Lock()
	t := p.processes[handle]
	p.mu.Unlock()
	if t == nil {
		return nil
	}
	return t.view.Load().loads
}

// Degrade has less or more of a point delivered in one process. It returns at
// once; Status tells when it is done.
func (p *Placer) Degrade(handle uint64, step budget.Step) {
	p.mu.Lock()
	t, spec := p.processes[handle], p.points[step.Point]
	p.mu.Unlock()
	if t != nil && spec != nil {
		p.begin(func() { t.degrade(p.ctx, spec, step) })
	}
}

// degrade takes a step, unless the point has gone or is at its level meanwhile.
func (t *tenant) degrade(ctx context.Context, spec *attunev1.MeasurePoint, step budget.Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	index := step.Point
	placed, known := t.placed[index], t.degraded[index]
	gone := placed == nil && (known.before == nil || known.spec != spec) || placed != nil && placed.spec != spec
	if t.gone || gone || !t.placer.has(index, spec) {
		return
	}
	if t.level(index, spec) == step.To {
		return // asked for again before the first step was taken
	}
	d := degradation{spec: spec, level: step.To, reason: step.Reason}
	switch {
	case step.To == budget.Off:
		d.before = placed
		t.placer.unstand(index) // it would go on to cost a trap
		t.takeOut(ctx, index)
		t.degraded[index] = d
		t.show()
	case placed != nil && placed.moves(spec, step.To):
		t.degraded[index] = d
		t.leave(index)
		t.placer.begin(func() { t.placer.returnAll(); t.ask(wish{index: index, spec: spec}) })
		return
	case placed == nil:
		if !t.resume(ctx, d, index, known) {
			return
		}
	default:
		if !t.redeliver(d, index, placed, known) {
			return
		}
	}
	t.tellDegraded(index)
}

// resume puts a point in again that was off, to be delivered as d says; false if
// it stays off. The caller holds t.mu.
func (t *tenant) resume(ctx context.Context, d degradation, index uint16, known degradation) bool {
	t.degraded[index] = d
	p, err := t.serveNamed(ctx, index, t.effective(index, d.spec))
	if patched := (patchedError{}); errors.As(err, &patched) {
		t.placer.handOver(patched.numbers, func(kept *sites.Kept, err error) { // it is tried again
			if err == nil {
				t.placer.giveBack(kept)
			}
		})
	}
	if err != nil {
		d.before = known.before
		d.level, d.reason = budget.Off, errors.Join(errors.New(d.reason), err).Error()
		t.degraded[index] = d
		return false
	}
	t.keep(index, d.spec, p)
	return true
}

// redeliver has a point in place delivered as d says; false if it stays as it was
// known. The caller holds t.mu.
func (t *tenant) redeliver(d degradation, index uint16, placed *placement, known degradation) bool {
	t.degraded[index] = d
	err := t.change(index, d.spec, placed)
	if err == nil {
		return true
	}
	t.placer.log.Warn("measure point keeps its delivery", "point", d.spec.GetId(), "pid", t.process.PID(), "error", err)
	delete(t.degraded, index)
	if known.spec == d.spec {
		t.degraded[index] = known
	}
	return false
}

func (t *tenant) serveNamed(ctx context.Context, index uint16, spec *attunev1.MeasurePoint) (*placement, error) {
	spec, err := t.named(spec)
	if err != nil {
		return nil, err
	}
	return t.serve(ctx, index, spec, false)
}

// change has what serves a point deliver something else, without missing a hit.
func (t *tenant) change(index uint16, spec *attunev1.MeasurePoint, placed *placement) error {
	now, err := t.named(t.effective(index, spec))
	if err != nil {
		return err
	}
	after := *placed
	if memory := t.process.Memory(); memory != nil && len(placed.locals) > 0 {
		delivery, _, err := t.control(index, now, placed.mechanism)
		if err != nil {
			return err
		}
		for _, local := range placed.locals {
			if err := memory.SetPoint(local, delivery); err != nil {
				return err
			}
		}
		after.reckon(now)
	}
	t.keep(index, spec, &after)
	return nil
}

// keep notes a placement. The caller holds t.mu.
func (t *tenant) keep(index uint16, spec *attunev1.MeasurePoint, p *placement) {
	p.spec = spec
	p.load = t.load(index, spec, p)
	t.placed[index] = p
	t.show()
}

// effective is a point as the budget leaves it. The caller holds t.mu.
func (t *tenant) effective(index uint16, spec *attunev1.MeasurePoint) *attunev1.MeasurePoint {
	d, ok := t.degraded[index]
	if !ok || d.spec != spec || d.level == asked(spec) {
		return spec
	}
	return at(spec, d.level)
}

// at is a point at a level of delivery.
func at(spec *attunev1.MeasurePoint, level budget.Level) *attunev1.MeasurePoint {
	out := proto.CloneOf(spec)
	switch level {
	case budget.Each:
		out.Delivery = attunev1.Delivery_DELIVERY_EVENT
	case budget.Sampled:
		out.Delivery = attunev1.Delivery_DELIVERY_SAMPLED
		out.SampleEvery = max(spec.GetSampleEvery(), budget.SampleEvery)
	default:
		out.Delivery = attunev1.Delivery_DELIVERY_AGGREGATE
	}
	return out
}

// asked is the level that a point asks for.
func asked(spec *attunev1.MeasurePoint) budget.Level {
	switch spec.GetDelivery() {
	case attunev1.Delivery_DELIVERY_EVENT:
		return budget.Each
	case attunev1.Delivery_DELIVERY_SAMPLED:
		return budget.Sampled
	}
	return budget.Aggregated
}

// costsOf estimates what a placement would cost at each level. What the kernel
// does costs the same whatever is done with the hit: the trap is what takes time.
func costsOf(p *placement, spec *attunev1.MeasurePoint) (costs budget.Costs) {
	for level := asked(spec); level < budget.Off; level++ {
		after := *p
		if p.moves(spec, level) {
			after.attachments, after.extra = nil, costPatch
		}
		if len(after.attachments) == 0 {
			after.reckon(delivered(spec, level))
		}
		costs[level] = after.cost
	}
	return costs
}

// reckon notes what a hit costs that DMLib takes.
func (p *placement) reckon(spec *attunev1.MeasurePoint) {
	p.cost = cost(spec) + p.captured.cost(spec) + p.extra
}

// moves says whether DMLib may serve a point at a level for less than the kernel,
// which serves it as it was asked for.
func (p *placement) moves(spec *attunev1.MeasurePoint, level budget.Level) bool {
	return p.preferred && level < budget.Off && p.captured.cost(delivered(spec, level)) <= costTrap
}

// delivered is a point at a level of delivery, which may be the one it asks for.
func delivered(spec *attunev1.MeasurePoint, level budget.Level) *attunev1.MeasurePoint {
	if level == asked(spec) {
		return spec
	}
	return at(spec, level)
}

// level is what is in force of a point. The caller holds t.mu.
func (t *tenant) level(index uint16, spec *attunev1.MeasurePoint) budget.Level {
	if d, ok := t.degraded[index]; ok && d.spec == spec {
		return d.level
	}
	return asked(spec)
}

// load is a point as the budget sees it. The caller holds t.mu.
func (t *tenant) load(index uint16, spec *attunev1.MeasurePoint, p *placement) budget.Load {
	l := budget.Load{Point: index, Asked: asked(spec), Now: t.level(index, spec), Costs: costsOf(p, spec)}
	if l.Now == budget.Sampled {
		l.Every = uint64(powerOfTwo(t.effective(index, spec).GetSampleEvery()))
	}
	return l
}

// tellDegraded tells what the budget has left of a point. The caller holds t.mu.
func (t *tenant) tellDegraded(index uint16) {
	d := t.degraded[index]
	p := t.placed[index]
	status := &attunev1.PointStatus{Point: uint32(index), Process: t.process.Handle(), State: attunev1.PointState_POINT_STATE_OFF}
	if p == nil {
		p = d.before
	} else {
		status.State = attunev1.PointState_POINT_STATE_PLACED
	}
	status.Mechanism, status.Reason, status.Symbols = p.mechanism, p.reason, p.symbols
	status.CostNanos, status.CostMeasured, status.LateNanos = p.cost, p.measured, uint64(p.late)
	t.describe(index, status)
	t.placer.log.Info("overhead budget", "point", d.spec.GetId(), "pid", t.process.PID(), "state", status.GetState(), "reason", d.reason)
	t.placer.options.Status(status)
}

// describe adds to a status what the budget has left. The caller holds t.mu.
func (t *tenant) describe(index uint16, status *attunev1.PointStatus) {
	d, ok := t.degraded[index]
	if !ok {
		return
	}
	status.DegradedReason = d.reason
	switch {
	case d.level == asked(d.spec), d.level == budget.Off:
	default:
		now := at(d.spec, d.level)
		status.DegradedTo = now.GetDelivery()
		if d.level == budget.Sampled {
			status.DegradedEvery = now.GetSampleEvery()
		}
	}
}
