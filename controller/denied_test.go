// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A process that may be observed executes a program that is to be left alone: DMLib does not come
// into that, nothing is changed in it, and why is told. Another one of the job is not concerned.
func TestDeniedProgram(t *testing.T) {
	b := start(t, func(c *Config) {
		c.Denied = func(program string) string {
			return map[bool]string{true: "denied: licence"}[path.Base(program) == "cat"]
		}
		c.Untouched = func(program string) string {
			return map[bool]string{true: "observed only"}[path.Base(program) != "storm"]
		}
	})
	refused := func(process uint64, why string) {
		t.Helper()
		results := b.apply(t, topPad("c1", process, 32<<20))
		if len(results) != 1 || results[0].GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(results[0].GetReason(), why) {
			t.Errorf("change: %v, want a refusal with %q", results, why)
		}
	}
	cmd := exec.Command("sh", "-c", "echo ready; read line; exec cat")
	cmd.Env = append(cmd.Environ(), b.controller.Environment()...)
	target := targets.StartCommand(t, cmd)
	refused(b.withDMLib(t, target.PID).GetHandle(), "observed only")
	if err := target.Say("go"); err != nil {
		t.Fatal(err)
	}
	denied := event(t, b, "the denied program", func(m *attunev1.PublishRequest) (*attunev1.Process, bool) {
		return m.GetProcessStarted(), path.Base(m.GetProcessStarted().GetExecutable()) == "cat"
	})
	if got := target.Ask(t, "still there"); got != "still there" { // DMLib has been refused by now, if it came
		t.Errorf("it says %q", got)
	}
	refused(denied.GetHandle(), "denied: licence")
	m := b.controller.members.Get(denied.GetHandle())
	if m.OutOfReach() == nil || m.Memory() != nil {
		t.Errorf("it is not left alone: state %v", m.State())
	}
	for _, way := range m.Snapshot().GetMechanisms() {
		if way.GetAvailable() || !strings.Contains(way.GetReason(), "denied: licence") {
			t.Errorf("%v", way)
		}
	}

	storm := targets.Start(t, targets.Build(t, "testdata/storm.c"), b.controller.Environment()...)
	results := b.apply(t, topPad("c2", b.withDMLib(t, storm.PID).GetHandle(), 32<<20))
	if len(results) != 1 || results[0].GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Errorf("change in a program that may be tuned: %v", results)
	}
	b.stop(t)
	if err := storm.End(t); err == nil || err.Error() != "exit status 3" {
		t.Errorf("the program ended with %v, want its own 3", err)
	}
}
