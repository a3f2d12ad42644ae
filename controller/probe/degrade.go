// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"

	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/sites"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// degrade takes a step, unless the point has gone or is at its level meanwhile.
func (t *tenant) degrade(ctx context.Context, spec *attunev1.MeasurePoint, step budget.Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	index := step.Point
	placed, known := t.placed[index], t.degraded[index]
	gone := placed == nil && (known.before == nil || known.spec != spec) || placed != nil && placed.spec != spec
	if t.gone || gone || !t.points.has(index, spec) {
		return
	}
	if t.degraded.level(index, spec) == step.To {
		return // asked for again before the first step was taken
	}
	d := degradation{spec: spec, level: step.To, reason: step.Reason}
	switch {
	case step.To == budget.Off:
		d.before = placed
		t.uprobes.kernel.unstand(index) // it would go on to cost a trap
		t.takeOut(ctx, index)
		t.degraded[index] = d
		t.show()
	case placed != nil && placed.moves(spec, step.To):
		t.degraded[index] = d
		t.leave(t.work.ctx, index)
		t.work.begin(func() { t.uprobes.kernel.returnAll(); t.ask(wish{index: index, spec: spec, back: true}) })
		return
	case placed == nil:
		if !t.resume(ctx, d, index, known) {
			return
		}
	case len(placed.attachments) > 0:
		return // it has come to the kernel since, which serves it as it was asked for
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
	var p *placement
	now, err := t.named(d.spec)
	if err == nil {
		p, err = t.serve(ctx, index, now, d.level, false)
	}
	if patched := (patchedError{}); errors.As(err, &patched) {
		step := budget.Step{Point: index, To: d.level, Reason: d.reason}
		t.makeWay(index, patched, func(kept *sites.Kept, err error) {
			if err == nil {
				t.degrade(t.work.ctx, d.spec, step)
				t.uprobes.kernel.giveBack(kept)
			}
		})
	}
	if err != nil {
		d.before = known.before
		d.level, d.reason = budget.Off, errors.Join(errors.New(d.reason), err).Error()
		t.degraded[index] = d
		return false
	}
	p.late = known.before.late
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
	t.log.Warn("measure point keeps its delivery", "point", d.spec.GetId(), "pid", t.process.PID(), "error", err)
	delete(t.degraded, index)
	if known.spec == d.spec {
		t.degraded[index] = known
	}
	return false
}

// change has what serves a point deliver something else, without missing a hit.
func (t *tenant) change(index uint16, spec *attunev1.MeasurePoint, placed *placement) error {
	now, err := t.named(t.degraded.effective(index, spec))
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
