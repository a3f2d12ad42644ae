// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"net/http"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A second daemon of the same node ends at once and says which one is there.
func TestSecondDaemonEnds(t *testing.T) {
	s := mustSiteOnly(t)
	daemon := s.attuned()
	patience.Until(t, "the daemon", func() bool { status, _ := s.get("/readyz"); return status == http.StatusOK })
	second := s.attuned()
	if err := second.Wait(); err == nil || second.ProcessState.ExitCode() != 1 {
		t.Errorf("the second daemon ended with %v", err)
	}
	log, err := os.ReadFile(s.path("log"))
	if err != nil || !strings.Contains(string(log), "stop it first") {
		t.Errorf("it says: %v\n%s", err, log)
	}
	if status, _ := s.get("/healthz"); status != http.StatusOK {
		t.Errorf("the first daemon answers %d", status)
	}
	s.stop(daemon)
}

// A policy that is read again holds for sessions that run.
func TestPolicyIsReadAgain(t *testing.T) {
	s := mustSiteOnly(t)
	a := &scripted{}
	serveScript(t, a, s.path("a.sock"))
	program := s.worker("worker")
	target := targets.Start(t, program)
	s.register("r1", program, "tune")
	c := a.reset()
	daemon := s.attuned()
	process := patience.Receive(t, "the process", c.processes)
	s.write("policy.yaml", "service:\n  - mode: observe\n    users: [root]\n    reason: maintenance\n")
	if err := daemon.Process.Signal(unix.SIGHUP); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the new policy", func() bool {
		log, err := os.ReadFile(s.path("log"))
		return err == nil && strings.Contains(string(log), "reloaded")
	})
	c.requests <- setKnob("c1", process.GetHandle())
	result := patience.Receive(t, "the answer", c.results)
	if result.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(result.GetReason(), "maintenance") {
		t.Errorf("change: %v, want it refused for maintenance", result)
	}
	s.stop(daemon)
	checkUnharmed(t, target)
}

// The registry is lost and comes back: what runs goes on, and what is registered
// afterwards is found.
func TestRegistryIsLost(t *testing.T) {
	s := mustSiteOnly(t)
	a := &scripted{points: []*attunev1.PointWant{workPoint()}}
	serveScript(t, a, s.path("a.sock"))
	program, other := s.worker("worker"), s.worker("other")
	target := targets.Start(t, program)
	s.register("r1", program, "tune")
	c := a.reset()
	daemon := s.attuned()
	process := patience.Receive(t, "the process", c.processes)
	s.closeRegistry()
	patience.Until(t, "word of the loss", func() bool { _, text := s.get("/readyz"); return strings.Contains(text, "registry is away") })
	c.requests <- setKnob("c1", process.GetHandle())
	checkChanged(t, c, target)
	checkCounts(t, c)
	s.startRegistry()
	c = a.reset()
	late := targets.Start(t, other)
	s.register("r2", other, "tune")
	// The first one comes again if its session's owner is the last that is told.
	for pid := target.PID; pid != late.PID; {
		process := patience.Receive(t, "the other process", c.processes)
		if pid = int(process.GetIdentity().GetPid()); pid != late.PID && pid != target.PID {
			t.Fatalf("process is %v", process)
		}
	}
	s.stop(daemon)
	checkUnharmed(t, target)
	checkUnharmed(t, late)
}
