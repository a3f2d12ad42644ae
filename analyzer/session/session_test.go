// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPointsAreShared has two tunlets ask for the same point.
func TestPointsAreShared(t *testing.T) {
	r := newRig(t, core.ModeTune)
	first := r.connect("ac1", 7)
	a := newScripted(t, "a", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("mine", "malloc"), hook("none", "")}})
	a.started.AddPoints[1].Target = nil
	b := newScripted(t, "b", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("same", "malloc"), hook("other", "free")}})
	r.session.TunletReady(a)
	r.settle("a")
	r.session.TunletReady(b)
	r.settle("b")
	r.tick()
	if diff := cmp.Diff([]uint32{1, 2}, first.indexes()); diff != "" {
		t.Fatal(diff)
	}
	second := r.connect("ac2", 7)
	r.session.Manage("ac1", &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Point{Point: &attunev1.PointStatus{
		Point: 1, Process: 7, State: attunev1.PointState_POINT_STATE_PLACED, Mechanism: "hook"}}})
	r.settle("a", "b")
	if diff := cmp.Diff([]*attunev1.Want{first.last()}, second.wanted(), protocmp.Transform()); diff != "" {
		t.Errorf("a later controller: %s", diff)
	}
	names := get(a, func() []string {
		var out []string
		for _, p := range a.points {
			out = append(out, fmt.Sprintf("%s %s %d", p.GetPointId(), p.GetStatus().GetState(), p.GetStatus().GetProcess()))
		}
		return out
	})
	if diff := cmp.Diff([]string{"none POINT_STATE_REFUSED 0", "mine POINT_STATE_PLACED 1"}, names); diff != "" {
		t.Errorf("a was told: %s", diff)
	}
	r.records("ac1", 7, 1, 1, 2, 1, 9)
	r.settle("a", "b")
	if got := [2]int{recordsOf(a), recordsOf(b)}; got != [2]int{3, 4} {
		t.Errorf("records delivered %v, want 3 to a, 4 to b", got)
	}
	r.session.TunletGone("a", "test")
	r.session.TunletGone("b", "test")
	rep := r.report()
	r.tick()
	if got := first.indexes(); len(got) > 0 {
		t.Errorf("after both tunlets had gone: %v", got)
	}
	if len(rep.Points) != 3 || rep.Points[0].State != "placed" || rep.Events.Records != 5 {
		t.Errorf("points %+v", rep.Points)
	}
}

// A tunlet that wants no samples of a process gets none, and the others do.
func TestSamplesGoToThoseThatWantThem(t *testing.T) {
	r := newRig(t, core.ModeTune)
	all, none := newScripted(t, "all", nil), newScripted(t, "none", nil)
	none.wants = []*attunev1.SampleInterest{{Process: 1}, {Process: 99}} // one that is not there, too
	r.session.TunletReady(all)
	r.session.TunletReady(none)
	r.connect("ac1", 7)
	r.grow()
	r.settle("all", "none")
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{
		Samples: &attunev1.SampleBatch{UnixNano: 1, Samples: []*attunev1.Sample{{Process: 7}}},
	}})
	r.settle("all", "none")
	for tunlet, want := range map[*scripted]int{all: 1, none: 0} {
		if got := get(tunlet, func() int { return len(tunlet.events) }); got != want {
			t.Errorf("%s was woken %d times, want %d", tunlet.name, got, want)
		}
	}
}

// TestNewsInOrder checks what a tunlet that comes late is told. It never hears
// of a process that ended before it was worth a call, and of the application's
// end only after all that a controller delivers while it stops.
func TestNewsInOrder(t *testing.T) {
	r := newRig(t, core.ModeAdvise)
	r.connect("ac1", 5)
	r.connect("ac2", 5)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 5}}})
	r.grow() // the other one is old enough now
	a := newScripted(t, "a", nil)
	r.session.TunletReady(a)
	if err := r.session.Settle(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.session.Publish("ac2", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessChanged{ProcessChanged: &attunev1.Process{
		Handle: 5, Identity: &attunev1.ProcessIdentity{Pid: 5}, ExecutableSha256: "00"}}})
	r.session.Publish("ac2", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 5}}})
	if err := r.session.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	want := []string{"application s1 advise", "process 2 pid 5 update false", "process 2 pid 5 update true", "ended 2", "application ended"}
	if diff := cmp.Diff(want, get(a, func() []string { return a.told })); diff != "" {
		t.Error(diff)
	}
}

// TestKeptIsToldAfterItsProcess: a tunlet that is started again hears of what it had kept after
// the process in which that is.
func TestKeptIsToldAfterItsProcess(t *testing.T) {
	r := patientRig(t)
	r.hello("ac1", "n1", "old-c1")
	r.has("ac1", "n1", 1)
	r.grow()
	a := newScripted(t, "a", nil)
	r.session.TunletReady(a)
	r.settle("a")
	want := []string{"application s1 tune", "process 1 pid 1 update false", "taken over old-c1 PROPOSAL_STATE_KEPT k@1"}
	if diff := cmp.Diff(want, get(a, func() []string { return a.told })); diff != "" {
		t.Error(diff)
	}
}

// TestEndIsToldBeforeWhatItEnds: a tunlet knows of the end of a process when it hears of a proposal
// that ended with it.
func TestEndIsToldBeforeWhatItEnds(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1", 1)
	r.grow()
	a := newScripted(t, "a", &attunev1.Reaction{Proposals: []*attunev1.Proposal{{Id: "p", Changes: []*attunev1.Change{{
		Knob: "k", Process: 1, Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "k"}}},
	}}}}})
	r.session.TunletReady(a)
	r.settle("a")
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 1}}})
	r.report()
	r.settle("a")
	want := []string{"application s1 tune", "process 1 pid 1 update false", "ended 1", "p PROPOSAL_STATE_REFUSED"}
	if diff := cmp.Diff(want, get(a, func() []string { return a.told })); diff != "" {
		t.Error(diff)
	}
}

// TestUnreachableController has a management channel that takes nothing.
func TestUnreachableController(t *testing.T) {
	r := newRig(t, core.ModeTune)
	l := r.connect("ac1", 1)
	l.mu.Lock()
	l.full = true
	l.mu.Unlock()
	baseline := []*attunev1.ObjectiveSample{{Value: 1, UnixNano: r.time().UnixNano()}}
	a := newScripted(t, "a", &attunev1.Reaction{Objectives: baseline, Proposals: []*attunev1.Proposal{{Id: "p", Changes: []*attunev1.Change{{
		Knob: "k", Process: 1, Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "k"}}},
	}}}}})
	r.session.TunletReady(a)
	r.settle("a")
	for range 10 {
		r.tick()
	}
	rep := r.report()
	if len(rep.Changes) != 1 || rep.Changes[0].Verdict != report.VerdictFailed || rep.Changes[0].Reason != "the controller cannot be reached" {
		t.Errorf("changes %+v", rep.Changes)
	}
}

// TestLeasesAreRenewed counts renewals over three seconds.
func TestLeasesAreRenewed(t *testing.T) {
	r := newRig(t, core.ModeTune)
	l := r.connect("ac1")
	for range 60 {
		r.tick()
	}
	r.report()
	if diff := cmp.Diff([]string{"Want", "Renew", "Renew", "Renew"}, l.kinds()); diff != "" {
		t.Error(diff)
	}
}

// TestManyProcesses lets a job start more processes than the report lists.
func TestManyProcesses(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1")
	const n = maxProcesses + 500
	for h := uint64(1); h <= n; h++ {
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessStarted{ProcessStarted: &attunev1.Process{Handle: h}}})
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: h}}})
	}
	rep := r.report()
	if len(rep.Processes) != maxProcesses || len(rep.Remarks) != 1 || rep.Remarks[0].Text != "500 further processes that have ended are not listed" {
		t.Errorf("%d processes, remarks %+v", len(rep.Processes), rep.Remarks)
	}
}

// TestFinishIsBounded ends a session whose tunlet hangs.
func TestFinishIsBounded(t *testing.T) {
	r := newRig(t, core.ModeTune)
	a := newScripted(t, "a", nil)
	a.block = make(chan struct{})
	defer close(a.block)
	r.session.TunletReady(a)
	r.connect("ac1", 1)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{}}})
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := r.session.Finish(ctx); err == nil {
		t.Error("Finish did not tell that it was cut short")
	}
	r.session.Close()
	r.wg.Wait()
	if err := r.session.Finish(context.Background()); !errors.Is(err, ErrEnded) {
		t.Errorf("Finish after the end: %v", err)
	}
	if rep := r.report(); rep.Mode != "tune" {
		t.Errorf("report after the end: %+v", rep)
	}
}
