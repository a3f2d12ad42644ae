// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
)

// What the malloc tunlet changes makes memory cheaper, by its own objective. Who wants page
// faults gets the change undone, who wants none keeps it, by their own.
func TestOwnersObjectiveOutranks(t *testing.T) {
	for _, tt := range []struct {
		name, better, verdict string
	}{
		{"the tunlet's says better, the owner's worse", "more", report.VerdictUndone},
		{"both say better", "less", report.VerdictKept},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "faults.log")
			flags := []string{"--tunlet", "malloc", "--objective", "faults=" + tt.better + " file:" + log + ":^faults ([0-9]+)"}
			decided := happened(tt.verdict, func(e report.Entry) bool { return e.Tunlet == "malloc" && e.Kind == tt.verdict })
			r := tuneUntil(t, decided, flags, "/usr/bin/python3", "-c", faults, lasting, log)
			if r.Objective == nil || r.Objective.Name != "faults" || r.Objective.Values < 6 {
				t.Errorf("the objective is %+v", r.Objective)
			}
			made := slices.DeleteFunc(r.Changes, func(c report.Change) bool { return c.Verdict == report.VerdictFailed }) // not in time
			if len(made) == 0 {
				t.Error("no change was made")
			}
			for _, c := range made {
				if c.Verdict != tt.verdict || c.Objective == nil || !c.Objective.Own || c.Objective.Name != "faults" {
					t.Errorf("change %+v by %+v, want it %s by the owner's objective", c, c.Objective, tt.verdict)
				}
			}
		})
	}
}
