// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"testing"

	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/shm"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Each step is taken in place, told, and taken back; a point that is off is not
// placed again by a second look, and can be removed.
func TestDegrade(t *testing.T) {
	placer, heard := start(t)
	p := mustProcess(t, 10)
	placer.Admit(context.Background(), p, true)
	spec := hook("malloc")
	spec.Delivery = attunev1.Delivery_DELIVERY_EVENT
	placer.Add(1, spec)
	placer.work.group.Wait()
	if loads := placer.Loads(10); len(loads) != 1 || loads[0].Asked != budget.Each || loads[0].Now != budget.Each ||
		loads[0].Costs[budget.Each] <= loads[0].Costs[budget.Sampled] {
		t.Fatalf("%+v", loads)
	}
	late := heard.of(1).GetLateNanos() // it was asked for while the process ran
	steps := []struct {
		to     budget.Level
		state  attunev1.PointState
		told   attunev1.Delivery
		counts int // points that DMLib aggregates
	}{
		{budget.Sampled, attunev1.PointState_POINT_STATE_PLACED, attunev1.Delivery_DELIVERY_SAMPLED, 0},
		{budget.Aggregated, attunev1.PointState_POINT_STATE_PLACED, attunev1.Delivery_DELIVERY_AGGREGATE, 1},
		{budget.Off, attunev1.PointState_POINT_STATE_OFF, 0, 0},
		{budget.Aggregated, attunev1.PointState_POINT_STATE_PLACED, attunev1.Delivery_DELIVERY_AGGREGATE, 1},
		{budget.Each, attunev1.PointState_POINT_STATE_PLACED, 0, 0},
		{budget.Off, attunev1.PointState_POINT_STATE_OFF, 0, 0},
	}
	for _, step := range steps {
		for range 2 { // a slow step is asked for again
			placer.Degrade(10, budget.Step{Point: 1, To: step.to, Reason: "because"})
		}
		placer.work.group.Wait()
		placer.Refresh(10)
		placer.work.group.Wait()
		s := heard.of(1)
		if s.GetState() != step.state || s.GetDegradedTo() != step.told || s.GetDegradedReason() != "because" || s.GetMechanism() != MechanismHook {
			t.Errorf("level %d: %v", step.to, s)
		}
		if s.GetLateNanos() != late || late == 0 {
			t.Errorf("level %d: late by %d ns, want %d", step.to, s.GetLateNanos(), late)
		}
		if got := len(enabled(p)); got != step.counts {
			t.Errorf("level %d: DMLib aggregates %d points", step.to, got)
		}
		if loads := placer.Loads(10); len(loads) != 1 || loads[0].Now != step.to {
			t.Errorf("level %d: %+v", step.to, loads)
		}
	}
	placer.Remove(1)
	placer.work.group.Wait()
	heard.expect(t, 1, attunev1.PointState_POINT_STATE_REMOVED, "")
	if loads := placer.Loads(10); len(loads) != 0 {
		t.Errorf("after the removal: %+v", loads)
	}
	placer.Degrade(10, budget.Step{Point: 1, To: budget.Each})
	placer.work.group.Wait()
	heard.expect(t, 1, attunev1.PointState_POINT_STATE_REMOVED, "")
}

// What a kernel's probe serves it delivers as it was asked for, whatever the budget left of
// the point before, and leaves of it by a step that comes too late. It tells what that costs.
func TestKernelDeliversWhatWasAsked(t *testing.T) {
	placer, heard := start(t)
	placer.Admit(t.Context(), mustProcess(t, 10), false)
	spec := &attunev1.MeasurePoint{Id: "f", Delivery: attunev1.Delivery_DELIVERY_EVENT}
	placer.points.add(1, spec)
	in := placer.tenants.at(10)
	in.mu.Lock()
	in.degraded[1] = degradation{spec: spec, level: budget.Aggregated, reason: "because"}
	in.tell(1, spec, &placement{
		mechanism: "uprobe_multi", cost: 1500, attachments: make([]heldAttachment, 1), locals: []int{shm.HookCount},
	}, nil)
	in.mu.Unlock()
	for range 2 {
		s, loads, costs := heard.of(1), placer.Loads(10), placer.Costs(10)
		if s.GetDegradedTo() != 0 || s.GetDegradedReason() != "because" || len(in.view.Load().uprobed) > 0 {
			t.Errorf("%v, read as sums: %v", s, in.view.Load().uprobed)
		}
		if len(loads) != 1 || loads[0].Now != budget.Each || loads[0].Costs != (budget.Costs{1500, 1500, 1500}) || costs[1] != 1500 {
			t.Errorf("%+v, costs %v", loads, costs)
		}
		placer.Degrade(10, budget.Step{Point: 1, To: budget.Sampled, Reason: "late"})
		placer.work.group.Wait()
	}
}
