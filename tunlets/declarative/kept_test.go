// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// timed has a point beside the objective's, which only the decision needs.
var timed = strings.Replace(lists, "symptom:", "  - {id: times, function: PyList_Append, object: \"libpython*\", time: true}\nsymptom:", 1)

// TestLooksAtWhatWasKept: the objective is reported from time to time, by its own points alone,
// which are in place a tenth of the time. What cannot be measured then is no matter, and the end
// of the change ends it.
func TestLooksAtWhatWasKept(t *testing.T) {
	h := tunlettest.Start(t, newTunlet(t, timed), nil, python())
	h.Run(time.Second)
	if len(h.Proposals) != 1 || !slices.Contains(h.Points(), "times@1") {
		t.Fatalf("proposals %v, points %v", h.Proposals, h.Points())
	}
	kept := h.Proposals[0].GetId()
	h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_KEPT, "")
	if diff := slices.Compare([]string{"lists@1"}, h.Points()); diff != 0 {
		t.Errorf("points %v in a look, want the objective's", h.Points())
	}
	look := func(d time.Duration) (values, placed int) {
		before := len(h.Objectives)
		for end := h.Elapsed() + d; h.Elapsed() < end; {
			h.Round()
			placed += len(h.Points())
		}
		return len(h.Objectives) - before, placed
	}
	for range 4 {
		if values, _ := look(80 * time.Second); values < 14 {
			t.Errorf("%d values of the objective in 80 s, want a look", values)
		}
	}
	if _, placed := look(10 * time.Minute); placed > int(time.Minute/tunlettest.Period) {
		t.Errorf("the point was in place in %d rounds of 10 minutes", placed)
	}
	h.Refuse = func(*attunev1.MeasurePoint, *tunlettest.Process) string { return "no room" }
	if values, placed := look(3 * time.Minute); values > 60 || placed > 0 || len(h.Remarks) > 0 {
		t.Errorf("%d values, points in %d rounds, remarks %v where the point is refused", values, placed, h.Remarks)
	}
	h.Refuse = nil
	h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_LIFTED, "")
	if values, _ := look(20 * time.Second); values < 380 {
		t.Errorf("%d values in 20 s while it is compared again", values)
	}
	h.SetState(kept, attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "")
	if values, placed := look(3 * time.Minute); values > 0 || placed > 0 || len(h.Proposals) > 1 {
		t.Errorf("%d values, points in %d rounds, proposals %v after it was undone", values, placed, h.Proposals)
	}
}
