// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func TestAdviceChangesNothing(t *testing.T) {
	storm := targets.Build(t, workloads+"malloc_storm.c")
	advised := happened("advised", func(e report.Entry) bool { return e.Kind == "advised" })
	r := tuneUntil(t, advised, []string{"--mode", "advise"}, storm, lasting)
	if len(r.Changes) != 0 || len(r.Advice) == 0 {
		t.Errorf("%d changes and %d recommendations, want none and some", len(r.Changes), len(r.Advice))
	}
}

func TestSilentWithoutTheProblem(t *testing.T) {
	wantNone(t, runTuned(t, nil, targets.Build(t, workloads+"control_threads.c"), "1000"))
}

// wantNone checks that nothing was changed, and nothing recommended.
func wantNone(t *testing.T, r report.Report) {
	t.Helper()
	if len(r.Changes) != 0 || len(r.Advice) != 0 {
		t.Errorf("changes %+v, advice %+v; want none", r.Changes, r.Advice)
	}
}
