// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const grace = 10 * time.Second

// patientRig is a session that awaits controllers and takes over a change that
// was kept in process 1.
func patientRig(t *testing.T) *rig {
	return newRigWith(t, Config{
		Core: core.Config{Mode: core.ModeTune}, Grace: grace, callTimeout: time.Hour,
		Inherit: []*attunev1.KeptChange{{Id: "old-c1", Host: "n1", Pid: 1, Knob: "k", Tunlet: "a", Action: "set k=2", Gain: 3}},
	})
}

// hello connects a controller on a node that has changes in force.
func (r *rig) hello(id, host string, inForce ...string) *link {
	l := &link{}
	r.session.ControllerConnected(&attunev1.ControllerHello{ControllerId: id, Host: host, InForce: inForce}, l)
	return l
}

// has connects the event channel of a controller with processes, and tells of
// them.
func (r *rig) has(id, host string, handles ...uint64) {
	r.session.EventsConnected(&attunev1.StreamHello{ControllerId: id, Host: host, Processes: handles})
	for _, h := range handles {
		r.session.Publish(id, &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessChanged{ProcessChanged: &attunev1.Process{
			Handle: h, Identity: &attunev1.ProcessIdentity{Pid: int32(h)}, Host: host, Uid: 1000, CommandLine: []string{"solver", "in"},
		}}})
	}
}

func (r *rig) summary() fold.Summary {
	r.t.Helper()
	s, err := View(r.t.Context(), r.session, func(time.Duration) fold.Summary { return r.account.Summary() })
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// pass lets time pass, a tick at a time.
func (r *rig) pass(d time.Duration) {
	for end := r.time().Add(d); r.time().Before(end); {
		r.tick()
	}
}

// TestTakeOver begins a session with controllers that have changes in force. Who sees that
// one is kept can rely on its node's knowing it.
func TestTakeOver(t *testing.T) {
	r := patientRig(t)
	if kept := r.summary().Kept; len(kept) != 1 || kept[0].GetId() != "old-c1" {
		t.Errorf("before its process is there: kept %v", kept)
	}
	l := r.hello("ac1", "n1", "old-c1", "stray")
	r.has("ac1", "n1", 1, 2)
	got := r.summary()
	want := fold.Summary{
		Command: []string{"solver", "in"}, UID: 1000, Hosts: []string{"n1"}, Processes: 2, Running: 2, Controllers: 1, Gain: 3,
		Kept: []*attunev1.KeptChange{{Id: "old-c1", Host: "n1", Pid: 1, Knob: "k", Tunlet: "a", Action: "set k=2", Gain: 3}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	wantSent := []*attunev1.ManageResponse{
		{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{Changes: []string{"old-c1"}}}},
		{RequestId: "unwanted", Request: &attunev1.ManageResponse_Undo{Undo: &attunev1.UndoChanges{ChangeIds: []string{"stray"}}}},
		{Request: &attunev1.ManageResponse_Want{Want: &attunev1.Want{}}},
		{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{
			Proven: &attunev1.ProvenChanges{Changes: []string{"old-c1"}, LeaseNanos: int64(5 * time.Second)},
		}}},
	}
	if diff := cmp.Diff(wantSent, l.sent, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if c := r.report().Changes; len(c) != 1 || c[0].Verdict != report.VerdictKept || c[0].Process != 1 {
		t.Errorf("changes %+v", c)
	}
}

// TestProvenIsTold: a controller is told which of its changes are proven good once, and
// once more by another connection.
func TestProvenIsTold(t *testing.T) {
	r := newRigWith(t, Config{
		Core: core.Config{Mode: core.ModeTune}, Grace: grace, ProvenLease: time.Minute,
		Inherit: []*attunev1.KeptChange{{Id: "old-c1", Host: "n1", Pid: 1, Knob: "k", Tunlet: "a", Action: "set k=2", Gain: 3}},
	})
	r.session.TunletReady(newScripted(t, "a", nil)) // else nobody watches over the change
	want := []*attunev1.ProvenChanges{{Changes: []string{"old-c1"}, LeaseNanos: int64(time.Minute)}}
	for range 2 {
		l := r.hello("ac1", "n1", "old-c1")
		r.has("ac1", "n1", 1)
		r.pass(3 * renewEvery)
		var told []*attunev1.ProvenChanges
		l.mu.Lock()
		for _, m := range l.sent {
			if proven := m.GetRenew().GetProven(); proven != nil {
				told = append(told, proven)
			}
		}
		l.mu.Unlock()
		if diff := cmp.Diff(want, told, protocmp.Transform()); diff != "" {
			t.Error(diff)
		}
		r.session.ControllerGone("ac1", l, false)
	}
}

// TestReplacedControllerIsFollowed: a controller breaks off and another one of its node has
// its process, with a change that it has taken over, told of after its hello, beside one
// that nobody knows: the one goes on, in the session that knew it, and the other is undone.
// The process may be told of later, and the end of the first one's channel last of all.
func TestReplacedControllerIsFollowed(t *testing.T) {
	for _, order := range []struct{ late, unnoticed bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
		late := order.late
		r := patientRig(t)
		r.session.TunletReady(newScripted(t, "a", nil)) // else nobody watches over the change
		l := r.hello("ac1", "n1", "old-c1")
		r.has("ac1", "n1", 1)
		for _, id := range []string{"ac2", "ac3"} { // as often as one likes
			before, gone := l, func(l *link) {
				r.session.ControllerGone("ac1", l, false)
				r.session.ControllerGone("ac2", l, false)
			}
			if !order.unnoticed {
				gone(before)
			}
			l = r.hello(id, "n1")
			if !late {
				r.has(id, "n1", 1)
			}
			r.session.Manage(id, &attunev1.ManageRequest{Message: &attunev1.ManageRequest_TakenOver{
				TakenOver: &attunev1.TakenOver{Changes: []string{"old-c1", "stray"}},
			}})
			if late {
				r.has(id, "n1", 1)
			}
			r.pass(2 * renewEvery)
			gone(before)
			r.pass(2 * renewEvery)
			if s := r.summary(); s.Running != 1 || len(s.Kept) != 1 || s.Kept[0].GetId() != "old-c1" {
				t.Errorf("%s, %+v: %+v", id, order, s)
			}
			var stays, goes, proven []string
			l.mu.Lock()
			for _, m := range l.sent {
				stays = append(stays, m.GetRenew().GetChanges()...)
				goes = append(goes, m.GetUndo().GetChangeIds()...)
				proven = append(proven, m.GetRenew().GetProven().GetChanges()...)
			}
			l.mu.Unlock()
			if diff := cmp.Diff([][]string{{"old-c1"}, {"stray"}, {"old-c1"}}, [][]string{stays, goes, proven}); diff != "" {
				t.Errorf("%s, %+v: %s", id, order, diff)
			}
		}
	}
}

// TestControllerComesBack breaks a channel: what the controller still has goes
// on, what it lost in the meantime is noted.
func TestControllerComesBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		inForce []string
		verdict string
		sent    []string
	}{
		{"with its change", []string{"old-c1"}, report.VerdictKept, []string{"Renew", "Renew"}},
		{"without", nil, report.VerdictUndone, []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := patientRig(t)
			r.session.TunletReady(newScripted(t, "a", nil)) // else nobody watches over the change
			l := r.hello("ac1", "n1", "old-c1")
			r.has("ac1", "n1", 1, 2)
			r.session.ControllerGone("ac1", l, false)
			r.pass(grace / 2)
			if s := r.summary(); s.Running != 2 || s.Controllers != 1 {
				t.Errorf("while out of reach: %+v", s)
			}
			l = r.hello("ac1", "n1", c.inForce...)
			r.has("ac1", "n1", 1)
			if s := r.summary(); s.Running != 1 || s.Processes != 2 {
				t.Errorf("when it is back: %+v", s)
			}
			got := []string{}
			for _, kind := range l.kinds() {
				if kind != "Want" {
					got = append(got, kind)
				}
			}
			if diff := cmp.Diff(c.sent, got); diff != "" {
				t.Error(diff)
			}
			if changes := r.report().Changes; len(changes) != 1 || changes[0].Verdict != c.verdict {
				t.Errorf("changes %+v", changes)
			}
			r.pass(2 * grace)
			if s := r.summary(); s.Running != 1 {
				t.Errorf("long after it came back: %+v", s)
			}
		})
	}
}

// TestControllerStaysAway has three ways to lose a controller for good.
func TestControllerStaysAway(t *testing.T) {
	for _, c := range []struct {
		name string
		lose func(*rig, *link)
		told bool // by a remark in the report
		left bool // its process may go on
	}{
		{"it parts", func(r *rig, l *link) { r.session.ControllerGone("ac1", l, true) }, false, true},
		{"it does not come in time", func(r *rig, l *link) { r.session.ControllerGone("ac1", l, false); r.pass(2 * grace) }, true, true},
		{"its node has another one", func(r *rig, l *link) { r.session.ControllerGone("ac1", l, false); r.hello("ac2", "n1") }, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := patientRig(t)
			other := r.hello("other", "n2")
			r.has("other", "n2", 7)
			l := r.hello("ac1", "n1")
			r.has("ac1", "n1", 1)
			r.session.ControllerGone("ac1", other, true) // not its channel: no news
			c.lose(r, l)
			if s := r.summary(); s.Running != 1 || s.Processes != 2 {
				t.Errorf("%+v", s)
			}
			told := slices.ContainsFunc(r.report().Remarks, func(m report.Remark) bool {
				return strings.Contains(m.Text, "controller ac1 on n1 broke") && strings.HasSuffix(m.Text, ": 1")
			})
			if told != c.told {
				t.Errorf("remarks %+v, want one about it: %v", r.report().Remarks, c.told)
			}
			if p := r.report().Processes[1]; (p.EndedSeconds == nil) != c.left {
				t.Errorf("its process is %+v", p)
			}
		})
	}
}

// TestComesBackTooLate: a controller comes back whose processes count as ended, and has them
// yet. They are others to the session, which tunlets hear of, and which end like any.
func TestComesBackTooLate(t *testing.T) {
	for name, lose := range map[string]func(*rig, *link){
		"it was given up": func(r *rig, l *link) { r.session.ControllerGone("ac1", l, false); r.pass(2 * grace) },
		"it had parted":   func(r *rig, l *link) { r.session.ControllerGone("ac1", l, true) },
	} {
		for _, eventsFirst := range []bool{false, true} {
			r := patientRig(t)
			a := newScripted(t, "a", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("mine", "malloc")}})
			r.session.TunletReady(a)
			l := r.hello("ac1", "n1")
			r.has("ac1", "n1", 1)
			r.grow()
			lose(r, l)
			if eventsFirst {
				r.has("ac1", "n1", 1)
				l = r.hello("ac1", "n1")
			} else {
				l = r.hello("ac1", "n1")
				r.has("ac1", "n1", 1)
			}
			r.grow()
			r.settle("a")
			want := []string{"application s1 tune", "process 1 pid 1 update false", "ended 1", "process 2 pid 1 update false"}
			if diff := cmp.Diff(want, get(a, func() []string { return a.told })); diff != "" {
				t.Errorf("%s, events first %v: the tunlet is told %s", name, eventsFirst, diff)
			}
			if points := l.indexes(); !cmp.Equal(points, []uint32{1}) {
				t.Errorf("%s, events first %v: points %v", name, eventsFirst, points)
			}
			r.session.ControllerGone("ac1", l, false)
			r.pass(2 * grace)
			if s := r.summary(); s.Running != 0 || s.Processes != 1 || s.Controllers != 0 {
				t.Errorf("%s, events first %v: in the end %+v", name, eventsFirst, s)
			}
		}
	}
}

// TestHalfBack: of a controller that comes back too late the management channel never does.
func TestHalfBack(t *testing.T) {
	r := patientRig(t)
	l := r.hello("ac1", "n1")
	r.has("ac1", "n1", 1)
	r.session.ControllerGone("ac1", l, false)
	r.pass(2 * grace)
	r.has("ac1", "n1", 1)
	if s := r.summary(); s.Running != 1 {
		t.Errorf("at first %+v", s)
	}
	r.pass(2 * grace)
	if s := r.summary(); s.Running != 0 || s.Controllers != 0 {
		t.Errorf("after a while %+v", s)
	}
}

// TestRefusedControllers: people are told once of each host.
func TestRefusedControllers(t *testing.T) {
	r := newRig(t, core.ModeTune)
	for _, host := range []string{"n1", "n1", "n2", "n1"} {
		r.session.ControllerRefused(host, "it is older")
	}
	var told []string
	for _, m := range r.report().Remarks {
		told = append(told, m.Text)
	}
	want := []string{"nothing is measured or changed on n1: it is older", "nothing is measured or changed on n2: it is older"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

// TestDismiss waits for controllers to leave.
func TestDismiss(t *testing.T) {
	r := patientRig(t)
	l := r.hello("ac1", "n1")
	done := make(chan error, 1)
	go func() { done <- r.session.Dismiss(t.Context(), []string{"c1"}) }()
	r.until("asked to leave", func(*report.Report) bool { return slices.Contains(l.kinds(), "End") })
	select {
	case err := <-done:
		t.Fatalf("did not wait: %v", err)
	default:
	}
	want := []*attunev1.ManageResponse{{RequestId: "end", Request: &attunev1.ManageResponse_End{End: &attunev1.EndSession{Keep: []string{"c1"}}}}}
	if diff := cmp.Diff(want, l.sent[1:], protocmp.Transform()); diff != "" { // after what it wants measured
		t.Error(diff)
	}
	r.session.ControllerGone("ac1", l, true)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestManyProcessesLeave: the controller of more processes than the report lists goes,
// or comes back without them. All of them end, and those beyond are left out.
func TestManyProcessesLeave(t *testing.T) {
	for _, tt := range []struct {
		name string
		goes func(r *rig, l *link)
	}{
		{"the controller parts", func(r *rig, l *link) { r.session.ControllerGone("ac1", l, true) }},
		{"the controller is lost", func(r *rig, l *link) { r.session.ControllerGone("ac1", l, false) }},
		{"the processes ended meanwhile", func(r *rig, _ *link) {
			r.session.EventsConnected(&attunev1.StreamHello{ControllerId: "ac1"})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, core.ModeTune)
			var handles []uint64
			for n := range uint64(maxProcesses + 10) {
				handles = append(handles, n+1)
			}
			tt.goes(r, r.connect("ac1", handles...))
			rep := r.report()
			if running := r.summary().Running; running > 0 || len(rep.Processes) != maxProcesses {
				t.Errorf("%d of %d listed processes run", running, len(rep.Processes))
			}
		})
	}
}
