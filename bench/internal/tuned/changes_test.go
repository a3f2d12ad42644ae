// SPDX-License-Identifier: Apache-2.0

package tuned

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/attune-hpc/attune/analyzer/report"
)

func change(proposal, knob, verdict string, process int, applied int64) report.Change {
	c := report.Change{Tunlet: "mpi-progress", Proposal: proposal, Knob: knob, Process: process, Verdict: verdict}
	if applied != 0 {
		at := time.Unix(applied, 0)
		c.AppliedAt = &at
	}
	return c
}

func TestChanges(t *testing.T) {
	r := report.Report{Changes: []report.Change{
		change("1", "yield", report.VerdictFailed, 10, 0),
		change("2", "yield", report.VerdictKept, 10, 100),
		change("2", "yield", report.VerdictKept, 11, 103),
		change("3", "yield", report.VerdictUndone, 10, 200),
	}}
	got := Changes(r)
	want := []Change{
		{Tunlet: "mpi-progress", Knob: "yield", Old: "?", New: "?", Processes: 1, Verdict: report.VerdictFailed},
		{Tunlet: "mpi-progress", Knob: "yield", Old: "?", New: "?", Processes: 2, Verdict: report.VerdictKept, Applied: time.Unix(103, 0)},
		{Tunlet: "mpi-progress", Knob: "yield", Old: "?", New: "?", Processes: 1, Verdict: report.VerdictUndone, Applied: time.Unix(200, 0)},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Change{})); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if n := Proposals(got); n != 3 {
		t.Errorf("%d proposals, want 3", n)
	}
	if of := Of("mpi-progress", got); len(of) != 3 || len(Of("malloc", got)) != 0 {
		t.Errorf("of mpi-progress %v, want all", of)
	}
	if at, ok := FirstKept(got); !ok || !at.Equal(time.Unix(103, 0)) {
		t.Errorf("first kept: got %v, %v; want the last process of proposal 2", at, ok)
	}
}

func TestFirstKeptIsOnlyWhatWasKept(t *testing.T) {
	r := report.Report{Changes: []report.Change{change("1", "yield", report.VerdictUndone, 10, 100)}}
	if at, ok := FirstKept(Changes(r)); ok {
		t.Errorf("got %v, want none", at)
	}
}
