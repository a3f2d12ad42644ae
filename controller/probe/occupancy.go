// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/attune-hpc/attune/controller/budget"
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

// degradations are those of one process, by point. They are guarded by tenant.mu.
type degradations map[uint16]degradation

// effective is a point as the budget leaves it.
func (d degradations) effective(index uint16, spec *attunev1.MeasurePoint) *attunev1.MeasurePoint {
	return delivered(spec, d.level(index, spec))
}

// level is what is in force of a point.
func (d degradations) level(index uint16, spec *attunev1.MeasurePoint) budget.Level {
	if one, ok := d[index]; ok && one.spec == spec {
		return one.level
	}
	return asked(spec)
}

// describe adds to a status what the budget has left.
func (d degradations) describe(index uint16, status *attunev1.PointStatus) {
	one, ok := d[index]
	if !ok {
		return
	}
	status.DegradedReason = one.reason
	if one.level == asked(one.spec) || one.level == budget.Off {
		return
	}
	now := at(one.spec, one.level)
	status.DegradedTo = now.GetDelivery()
	if one.level == budget.Sampled {
		status.DegradedEvery = now.GetSampleEvery()
	}
}

// load is a point as the budget sees it.
func (d degradations) load(index uint16, spec *attunev1.MeasurePoint, p *placement) budget.Load {
	return budget.Load{
		Point: index, Asked: asked(spec), Now: d.level(index, spec), Costs: costsOf(p, spec),
		Every: uint64(powerOfTwo(delivered(spec, budget.Sampled).GetSampleEvery())),
	}
}

// occupancy is what is placed in one process, and tells of it. It is guarded by
// tenant.mu, but for view.
type occupancy struct {
	*mechanisms
	placed   map[uint16]*placement
	degraded degradations // what the overhead budget has touched
	// recalled are points that are about to be served by patches again.
	recalled map[uint16]recalled
	// refused has the points of which it was told why they are not here.
	refused map[uint16]refusal

	view atomic.Pointer[view] // for readers that must not wait for mu
}

// view is what is placed, as of the last change. It is never modified.
type view struct {
	costs   map[uint16]float64
	uprobed []uint16 // those whose hits a uprobe sums up
	loads   []budget.Load
}

// keep notes a placement. The kernel serves it as it was asked for.
func (o *occupancy) keep(index uint16, spec *attunev1.MeasurePoint, p *placement) {
	p.spec = spec
	if d, touched := o.degraded[index]; touched && d.spec == spec && len(p.attachments) > 0 {
		d.level = asked(spec)
		o.degraded[index] = d
	}
	p.load = o.degraded.load(index, spec, p)
	o.placed[index] = p
	o.show()
}

// show publishes the view.
func (o *occupancy) show() {
	v := &view{costs: make(map[uint16]float64, len(o.placed))}
	for index, p := range o.placed {
		v.costs[index] = p.cost
		if len(p.attachments) > 0 && control(index, p.spec).Aggregate {
			v.uprobed = append(v.uprobed, index)
		}
		v.loads = append(v.loads, p.load)
	}
	for index, d := range o.degraded {
		if d.before != nil && o.placed[index] == nil {
			v.loads = append(v.loads, o.degraded.load(index, d.spec, d.before))
		}
	}
	o.view.Store(v)
}

// tell notes and tells what became of a point.
func (o *occupancy) tell(index uint16, spec *attunev1.MeasurePoint, p *placement, err error) {
	if err != nil {
		delete(o.recalled, index)
		reason := err.Error()
		if passes(err) {
			reason += whyAgain
		}
		o.refused[index] = refusal{spec, passes(err)}
		o.log.Info("measure point refused", "point", spec.GetId(), "pid", o.process.PID(), "reason", reason)
		o.options.Status(&attunev1.PointStatus{
			Point: uint32(index), Process: o.process.Handle(), State: attunev1.PointState_POINT_STATE_REFUSED, Reason: reason,
		})
		return
	}
	delete(o.refused, index)
	o.keep(index, spec, p)
	o.log.Info("measure point placed", "point", spec.GetId(), "pid", o.process.PID(),
		"mechanism", p.mechanism, "symbols", len(p.symbols))
	o.options.Status(o.status(index, attunev1.PointState_POINT_STATE_PLACED, p))
}

// tellDegraded tells what the budget has left of a point.
func (o *occupancy) tellDegraded(index uint16) {
	d, state, p := o.degraded[index], attunev1.PointState_POINT_STATE_PLACED, o.placed[index]
	if p == nil {
		state, p = attunev1.PointState_POINT_STATE_OFF, d.before
	}
	o.log.Info("overhead budget", "point", d.spec.GetId(), "pid", o.process.PID(), "state", state, "reason", d.reason)
	o.options.Status(o.status(index, state, p))
}

// busy lists the points, of those that are wanted, that may be served, or better, when the
// process is less busy or goes on.
func (o *occupancy) busy(wanted *points) (wishes []wish) {
	for index, p := range o.placed {
		if p.partly || p.busy {
			wishes = append(wishes, wish{index: index, spec: p.spec})
		}
	}
	for index, r := range o.refused {
		if r.passes && wanted.has(index, r.spec) {
			wishes = append(wishes, wish{index: index, spec: r.spec})
		}
	}
	return wishes
}

// status is that of a point with the placement p.
func (o *occupancy) status(index uint16, state attunev1.PointState, p *placement) *attunev1.PointStatus {
	status := &attunev1.PointStatus{
		Point: uint32(index), Process: o.process.Handle(), State: state, Mechanism: p.mechanism, Reason: p.reason,
		Symbols: p.symbols, CostNanos: p.cost, CostMeasured: p.measured, LateNanos: uint64(p.late),
	}
	o.degraded.describe(index, status)
	return status
}

// takeOut takes points out of the process.
func (o *occupancy) takeOut(ctx context.Context, indexes ...uint16) {
	var gone []*placement
	indexes = slices.DeleteFunc(slices.Clone(indexes), func(index uint16) bool { return o.placed[index] == nil })
	if len(indexes) == 0 {
		return
	}
	o.options.Leaving(o.process.Handle(), indexes...)
	for _, index := range indexes {
		gone = append(gone, o.placed[index])
		delete(o.placed, index)
	}
	o.show()
	o.stop(ctx, indexes, gone)
}

// remove takes points out, but not later ones with the same indexes.
func (o *occupancy) remove(ctx context.Context, gone []wish) {
	var indexes []uint16
	for _, w := range gone {
		d, touched := o.degraded[w.index]
		touched = touched && d.spec == w.spec
		if touched {
			delete(o.degraded, w.index)
		}
		absent := o.recalled[w.index].spec == w.spec
		if absent {
			delete(o.recalled, w.index)
		}
		if p := o.placed[w.index]; p != nil && p.spec == w.spec || touched && d.before != nil || absent {
			indexes = append(indexes, w.index)
		}
	}
	o.takeOut(ctx, indexes...)
	o.show()
	for _, index := range indexes {
		o.options.Status(&attunev1.PointStatus{
			Point: uint32(index), Process: o.process.Handle(), State: attunev1.PointState_POINT_STATE_REMOVED,
		})
	}
}
