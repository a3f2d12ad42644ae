// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// lease of the changes of a test.
const lease = 2 * time.Second

// An Analyzer is away for a moment: the same process comes back with the same
// handle, its measure points were not touched, and what it had changed stays if
// the Analyzer says so, else as long as its lease. The program notices nothing.
func TestAnalyzerComesBack(t *testing.T) {
	s := mustSiteOnly(t)
	a := &scripted{points: []*attunev1.AddPoint{workPoint()}}
	stop := serveScript(t, a, s.path("a.sock"))
	program := s.path("worker")
	if err := os.Rename(targets.Build(t, "testdata/worker.c", "-pthread"), program); err != nil {
		t.Fatal(err)
	}
	target := targets.Start(t, program)
	s.register("r1", program, "tune")
	c := a.reset()
	daemon := s.attuned()
	first := receive(t, "the process", c.processes)
	change := setKnob("c1", first.GetHandle())
	change.GetApply().GetChanges()[0].LeaseNanos = int64(lease)
	c.requests <- change
	checkChanged(t, c, target)
	checkCounts(t, c)
	before := a.placed()

	// It stands for the change.
	c = a.reset()
	stop()
	stop = serveScript(t, a, s.path("a.sock"))
	if again := receive(t, "the process again", c.processes); again.GetHandle() != first.GetHandle() {
		t.Errorf("process %d came back as %d", first.GetHandle(), again.GetHandle())
	}
	await(t, "the change in force", func() bool { return slices.Contains(a.lastHello().GetInForce(), "c1") })
	c.requests <- &attunev1.ManageResponse{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{Changes: []string{"c1"}}}}
	checkCounts(t, c)
	if after := a.placed(); after.GetMechanism() != before.GetMechanism() || after.GetState() != before.GetState() {
		t.Errorf("point is %v, was %v", after, before)
	}
	// More time than the lease has passed when the next records have come.
	for end := time.Now().Add(2 * lease); time.Now().Before(end); {
		receive(t, "calls", c.counts)
	}
	if knob := target.Ask(t, "knob"); knob != knobAfter {
		t.Errorf("the knob is %s, which the analyzer stood for", knob)
	}

	// It does not.
	c = a.reset()
	stop()
	serveScript(t, a, s.path("a.sock"))
	receive(t, "the process again", c.processes)
	await(t, "the end of the lease", func() bool { return target.Ask(t, "knob") == knobBefore })
	s.stop(daemon)
	checkUnharmed(t, target)
}

// placed is the latest status of a measure point.
func (a *scripted) placed() *attunev1.PointStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.statuses) == 0 {
		return nil
	}
	return a.statuses[len(a.statuses)-1]
}
