// SPDX-License-Identifier: Apache-2.0

//go:build e2e && full

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
)

// TestBagOfJobs runs eight jobs of one program, four at a time. In one of them the
// change is tried. The others, also those that come later, take its verdict over:
// the change is in force in each, read back, and compared with nothing.
func TestBagOfJobs(t *testing.T) {
	const script = `seq 8 | xargs -P 4 -I{} /usr/bin/python3 "$0" 7.{}`
	mustBeTuned(t, func() string {
		_, r := runTuned(t, []string{"--tunlet", "malloc"}, "sh", "-c", script, mustAbs(t, workloads+"numpy_storm.py"))
		return unlessSpared(r, "malloc", 8)
	})
}

// unlessSpared is the complaint where a tunlet's changes are not in force in so many
// processes, as they were asked for, or were tried in more than one of them.
func unlessSpared(r report.Report, tunlet string, processes int) string {
	tried, spared := map[int]bool{}, map[int]bool{}
	for _, c := range r.Changes {
		_, asked, _ := strings.Cut(c.Action, "=")
		switch {
		case c.Tunlet != tunlet:
		case c.AppliedSeconds == nil || c.New.String() != asked || c.Verdict != report.VerdictKept:
			return fmt.Sprintf("%s in process %d: %s, read back %s, %s: %s", c.Action, c.Process, c.Knob, c.New, c.Verdict, c.Reason)
		case c.Objective != nil:
			tried[c.Process] = true
		case strings.HasPrefix(c.Reason, "tried in another process of the program: gain: "):
			spared[c.Process] = true
		}
	}
	if len(tried) != 1 || len(spared) != processes-1 {
		return fmt.Sprintf("tried in %d processes, spared in %d, want 1 and %d", len(tried), len(spared), processes-1)
	}
	return ""
}
