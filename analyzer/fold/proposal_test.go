// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestRefusedVerdict: refused is only what never took effect. A change that was taken back to
// compare, and could not be made again then, is undone.
func TestRefusedVerdict(t *testing.T) {
	const refused, failed, undone = attunev1.Outcome_OUTCOME_REFUSED, attunev1.Outcome_OUTCOME_FAILED, attunev1.Outcome_OUTCOME_UNDONE
	for _, tt := range []struct {
		name                  string
		outcome               attunev1.Outcome
		applied, undone       int64
		verdict, reason, back string
	}{
		{"never made", refused, 0, 0, report.VerdictRefused, "busy", ""},
		{"not made again", refused, 1e9, 2e9, report.VerdictUndone, "k1 could not be made again: busy", "2s"},
		{"not made again, in part", failed, 1e9, 2e9, report.VerdictFailed, "k1 could not be made again: busy", "2s"},
		{"the process has ended since", attunev1.Outcome_OUTCOME_GONE, 1e9, 2e9, report.VerdictFailed, "k1 could not be made again: busy", ""},
		{"undone", undone, 1e9, 2e9, report.VerdictFailed, "k1 could not be made again: busy", "2s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := NewAccount()
			a.Take(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Proposal{Proposal: &attunev1.RecordedProposal{
				Number: 1, Tunlet: "malloc", State: "failed", Reason: "k1 could not be made again: busy",
				Changes: []*attunev1.RecordedChange{{
					Spec: &attunev1.Change{Id: "c1"}, Outcome: tt.outcome, AppliedNanos: tt.applied, UndoneNanos: tt.undone,
					Result: &attunev1.ActionResult{Reason: "busy"},
				}},
			}}})
			changes := a.Report(3e9).Changes
			if len(changes) != 1 {
				t.Fatalf("%+v", changes)
			}
			ch, back := changes[0], ""
			if ch.UndoneSeconds != nil {
				back = time.Duration(*ch.UndoneSeconds * 1e9).String()
			}
			if ch.Verdict != tt.verdict || ch.Reason != tt.reason || back != tt.back {
				t.Errorf("%s: %s, back after %q", ch.Verdict, ch.Reason, back)
			}
		})
	}
}
