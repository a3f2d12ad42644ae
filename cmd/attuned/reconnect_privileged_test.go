// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A change's lease is at least leastLease, and leaseTimes as long as a connection
// was away when nothing depended on it: on a busy machine that takes its time.
const (
	leastLease = 4 * time.Second
	leaseTimes = 4
)

// An Analyzer is away for a moment: the same process comes back with the same
// handle, its measure points were not touched, and what it had changed stays if
// the Analyzer says so, else as long as its lease. The program notices nothing.
func TestAnalyzerComesBack(t *testing.T) {
	s := mustSiteOnly(t)
	a := &scripted{points: []*attunev1.PointWant{workPoint()}}
	stop := serveScript(t, a, s.path("a.sock"))
	program := s.path("worker")
	if err := os.Rename(targets.Build(t, "testdata/worker.c", "-pthread"), program); err != nil {
		t.Fatal(err)
	}
	target := targets.Start(t, program)
	s.register("r1", program, "tune")
	c := a.reset()
	daemon := s.attuned("--budget", "100") // the worker calls the function all the time
	first := patience.Receive(t, "the process", c.processes)
	before := patience.Receive(t, "the point", c.points)
	if before.GetState() != attunev1.PointState_POINT_STATE_PLACED {
		t.Fatalf("point is %v", before)
	}
	// again ends the Analyzer and has another one in its place.
	again := func() {
		t.Helper()
		c = a.reset()
		stop()
		stop = serveScript(t, a, s.path("a.sock"))
		if p := patience.Receive(t, "the process again", c.processes); p.GetHandle() != first.GetHandle() {
			t.Errorf("process %d came back as %d", first.GetHandle(), p.GetHandle())
		}
	}

	// Nothing has been changed.
	lost := time.Now()
	again()
	checkCounts(t, c)
	lease := max(leastLease, leaseTimes*time.Since(lost))
	t.Log("lease:", lease)
	change := setKnob("c1", first.GetHandle())
	change.GetApply().GetChanges()[0].LeaseNanos = int64(lease)
	c.requests <- change
	checkChanged(t, c, target)

	// It stands for the change.
	again()
	patience.Until(t, "the change in force", func() bool { return slices.Contains(a.lastHello().GetInForce(), "c1") })
	c.requests <- &attunev1.ManageResponse{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{Changes: []string{"c1"}}}}
	checkCounts(t, c)
	// More time than the lease has passed when the next records have come.
	for end := time.Now().Add(lease + lease/4); time.Now().Before(end); {
		patience.Receive(t, "calls", c.counts)
	}
	for len(c.points) > 0 { // it need not be told again, unless DMLib serves it by now
		after := <-c.points
		same := after.GetMechanism() == before.GetMechanism() || after.GetMechanism() == "patch"
		if !same || after.GetState() != before.GetState() {
			t.Errorf("point is %v, was %v", after, before)
		}
	}
	if knob := target.Ask(t, "knob"); knob != knobAfter {
		t.Errorf("the knob is %s, which the analyzer stood for", knob)
	}

	// It does not.
	again()
	patience.Until(t, "the end of the lease", func() bool { return target.Ask(t, "knob") == knobBefore })
	s.stop(daemon)
	checkUnharmed(t, target)
}
