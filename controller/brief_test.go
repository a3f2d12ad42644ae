// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestBriefProgramsAreSpared: who has DMLib executes programs that are brief without
// it, whether it came before that was known or after, until these once are not; and
// none while points have to be in place before main.
func TestBriefProgramsAreSpared(t *testing.T) {
	b := start(t)
	defer b.stop(t)
	c := b.controller
	found, err := exec.LookPath("printenv")
	if err != nil {
		t.Fatal(err)
	}
	program, err := filepath.EvalSymlinks(found)
	if err != nil {
		t.Fatal(err)
	}
	shell := func() *targets.Target {
		cmd := exec.Command("sh", "-s")
		cmd.Env = append(os.Environ(), c.Environment()...)
		s := targets.Launch(t, cmd)
		b.withDMLib(t, s.PID)
		return s
	}
	spared := func(what string, s *targets.Target, want bool) {
		t.Helper()
		want = want && c.tracker.Sourced() && c.enters() // else all have to come to the gate
		if got := s.Ask(t, "printenv ATTUNE_SOCKET || echo none"); (got == "none") != want {
			t.Errorf("%s: the program is told %q", what, got)
		}
	}
	before := shell()
	spared("at first", before, false)
	c.brief.learn(c, program+"-not-there", true)
	c.brief.learn(c, program, true)
	spared("a brief program", before, true)
	after := shell()
	spared("of one that came later", after, true)

	b.addPoint(t, 1, &attunev1.MeasurePoint{Id: "all", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}})
	spared("with a point in all", before, false)
	b.ask(t, &attunev1.ManageResponse{RequestId: "remove", Request: &attunev1.ManageResponse_RemovePoint{
		RemovePoint: &attunev1.RemovePoint{Point: 1},
	}})
	spared("with none left", before, true)

	c.brief.learn(c, program, false)
	spared("not brief any more", before, false)
	spared("not brief any more", after, false)
	for _, s := range []*targets.Target{before, after} {
		if err := s.End(t); err != nil {
			t.Error(err)
		}
	}
}
