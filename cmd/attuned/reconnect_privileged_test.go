// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package main

import (
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
	leastLease = 12 * time.Second
	leaseTimes = 4
)

// An Analyzer is away for a moment: the same process comes back with the same
// handle, its measure points were not touched, and what it had changed stays if
// the Analyzer says so, else as long as its lease. The program notices nothing.
func TestAnalyzerComesBack(t *testing.T) {
	t.Parallel()
	s := mustSiteOnly(t)
	a := &scripted{points: []*attunev1.PointWant{workPoint()}}
	stop := serveScript(t, a, s.path("a.sock"))
	program := s.worker("worker")
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

// The Analyzer goes and does not come back: what is on trial is undone after its lease,
// what is proven good after its own, which is longer.
func TestProvenChangeOutlivesItsAnalyzer(t *testing.T) {
	t.Parallel()
	const lease, proven = leastLease, 3 * leastLease
	s := mustSiteOnly(t)
	a := &scripted{}
	stop := serveScript(t, a, s.path("a.sock"))
	daemon := s.attuned()
	tuned := map[string]*targets.Target{}
	var renewed time.Time // at the earliest
	for _, id := range []string{"tried", "good"} {
		w := mustBeChanged(t, s, a, id, func(change *attunev1.Change) { change.LeaseNanos = int64(lease) })
		tuned[id] = w.target
		if id == "good" {
			renewed = time.Now()
			w.requests <- &attunev1.ManageResponse{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{
				Proven: &attunev1.ProvenChanges{Changes: []string{id}, LeaseNanos: int64(proven)},
			}}}
			w.requests <- &attunev1.ManageResponse{RequestId: "heard", Request: &attunev1.ManageResponse_Undo{Undo: &attunev1.UndoChanges{ChangeIds: []string{"none"}}}}
			patience.Receive(t, "word that it was heard", w.results)
		}
	}
	stop()
	patience.Until(t, "the change on trial to be undone", func() bool { return tuned["tried"].Ask(t, "knob") == knobBefore })
	if knob := tuned["good"].Ask(t, "knob"); knob != knobAfter && time.Since(renewed) < proven {
		t.Errorf("the knob is %s after %v, though it was proven good for %v", knob, time.Since(renewed), proven)
	}
	patience.Until(t, "the proven change to be undone", func() bool { return tuned["good"].Ask(t, "knob") == knobBefore })
	if took := time.Since(renewed); took < proven {
		t.Errorf("it was undone after %v, want %v", took, proven)
	}
	s.stop(daemon)
	for _, target := range tuned {
		checkUnharmed(t, target)
	}
}
