// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestPaceWhileJudging has a change under judgement for longer than a session
// hurries otherwise: samples taken less often would not compare.
func TestPaceWhileJudging(t *testing.T) {
	r := newRig(t, core.ModeTune)
	l := r.connect("ac1", 1)
	a := newScripted(t, "a", &attunev1.Reaction{
		Objectives: []*attunev1.ObjectiveSample{{Value: 1, UnixNano: r.time().UnixNano()}},
		Proposals: []*attunev1.Proposal{{Id: "p", Changes: []*attunev1.Change{{
			Knob: "k", Process: 1, Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "k"}}},
		}}}},
	})
	r.session.TunletReady(a)
	r.settle("a")
	for !slices.Contains(l.kinds(), "Apply") {
		r.tick()
	}
	r.session.Manage("ac1", &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Result{Result: &attunev1.ActionResult{
		RequestId: "r1", ChangeId: "c1", Outcome: attunev1.Outcome_OUTCOME_APPLIED,
	}}})
	r.session.Manage("ac1", &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Done{Done: &attunev1.RequestDone{RequestId: "r1"}}})
	for range 2 * hurryFor / (50 * time.Millisecond) {
		r.tick()
	}
	pace, err := View(context.Background(), r.session, func(time.Duration) time.Duration { return r.session.pace })
	if err != nil || pace != r.session.cfg.Tick {
		t.Errorf("pace %v, %v; want %v", pace, err, r.session.cfg.Tick)
	}
}
