// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// result tells what became of a change in a controller's processes.
func (r *rig) result(controller, request, change string, outcome attunev1.Outcome) {
	r.session.Manage(controller, &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Result{Result: &attunev1.ActionResult{
		RequestId: request, ChangeId: change, Outcome: outcome,
	}}})
}

// TestLeaseEndsWhileConnected: a controller undoes a change that was kept, for its lease has
// ended. Then the change is not kept any more, whether its process is there or awaited.
func TestLeaseEndsWhileConnected(t *testing.T) {
	for name, tt := range map[string]struct {
		early   bool // before the process is there
		outcome attunev1.Outcome
		want    string // the verdict; empty: the session has no change
	}{
		"process there":       {false, attunev1.Outcome_OUTCOME_UNDONE, report.VerdictUndone},
		"not wholly":          {false, attunev1.Outcome_OUTCOME_FAILED, report.VerdictUndone},
		"process awaited":     {true, attunev1.Outcome_OUTCOME_UNDONE, ""},
		"awaited, overridden": {true, attunev1.Outcome_OUTCOME_OVERRIDDEN, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := patientRig(t)
			r.session.TunletReady(newScripted(t, "a", nil)) // else nobody watches over the change
			r.hello("ac1", "n1", "old-c1")
			if !tt.early {
				r.has("ac1", "n1", 1)
			}
			r.result("ac1", "", "old-c1", tt.outcome)
			if tt.early {
				r.has("ac1", "n1", 1)
			}
			got := ""
			if changes := r.report().Changes; len(changes) > 0 {
				got = changes[0].Verdict
			}
			if got != tt.want {
				t.Errorf("verdict %q, want %q", got, tt.want)
			}
			if kept, err := r.session.Keep(t.Context()); err != nil || len(kept) > 0 {
				t.Errorf("to be kept at the end: %q, %v", kept, err)
			}
		})
	}
}

// TestLeaseOfOneEndsOnTrial: what else the proposal has changed is taken back.
func TestLeaseOfOneEndsOnTrial(t *testing.T) {
	r := newRig(t, core.ModeTune)
	l := r.connect("ac1", 1, 2)
	var changes []*attunev1.Change
	for process := range uint64(2) {
		changes = append(changes, &attunev1.Change{
			Knob: "k", Process: process + 1, Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "k"}}},
		})
	}
	r.session.TunletReady(newScripted(t, "a", &attunev1.Reaction{
		Objectives: []*attunev1.ObjectiveSample{{Value: 1, UnixNano: r.time().UnixNano()}},
		Proposals:  []*attunev1.Proposal{{Id: "p", Changes: changes}},
	}))
	r.settle("a")
	for range 10 {
		r.tick()
	}
	apply := l.request(t, func(m *attunev1.ManageResponse) bool { return m.GetApply() != nil })
	for _, change := range apply.GetApply().GetChanges() {
		r.result("ac1", apply.GetRequestId(), change.GetId(), attunev1.Outcome_OUTCOME_APPLIED)
	}
	r.session.Manage("ac1", &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Done{Done: &attunev1.RequestDone{RequestId: apply.GetRequestId()}}})
	r.result("ac1", "", apply.GetApply().GetChanges()[0].GetId(), attunev1.Outcome_OUTCOME_UNDONE)
	r.report()
	undo := l.request(t, func(m *attunev1.ManageResponse) bool { return m.GetUndo() != nil })
	if diff := cmp.Diff([]string{apply.GetApply().GetChanges()[1].GetId()}, undo.GetUndo().GetChangeIds()); diff != "" {
		t.Errorf("taken back: %s", diff)
	}
}

// request returns the first request of a kind.
func (l *link) request(t *testing.T, is func(*attunev1.ManageResponse) bool) *attunev1.ManageResponse {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.sent {
		if is(m) {
			return m
		}
	}
	t.Fatalf("no such request among %v", l.sent)
	return nil
}
