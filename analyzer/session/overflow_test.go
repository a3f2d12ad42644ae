// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/session/calls"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestSlowTunletLosesData blocks a tunlet: data is dropped and counted, news is
// not, and the loop goes on.
func TestSlowTunletLosesData(t *testing.T) {
	r := newRigThatWaits(t, core.ModeTune, time.Hour)
	r.connect("ac1", 1)
	r.grow()
	a := newScripted(t, "a", nil)
	a.block, a.late = make(chan struct{}, 1), true
	r.session.TunletReady(a)
	const batches = 3 * calls.MaxData
	for range batches {
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{{Process: 1}}}}})
		r.report() // one by one, so that nothing is lost at the inbox
	}
	a.block <- struct{}{} // the hour is over for one call
	rep := r.until("hung", func(*report.Report) bool { return get(a, func() bool { return a.killed != "" }) })
	if rep.Events.Samples != batches || rep.Events.Lost.Tunlet < calls.MaxData || rep.Events.Lost.Analyzer != 0 {
		t.Errorf("events %+v", rep.Events)
	}
	if got := get(a, func() string { return a.killed }); got != "no answer to HandleEvents within 1h0m0s" {
		t.Errorf("killed because %q", got)
	}
	defer close(a.block)
	r.session.TunletGone("a", "killed")
	if after := r.report(); after.Events.Lost.Tunlet != batches { // what waited for it is lost, too
		t.Errorf("lost %d of %d, before the tunlet's end %d", after.Events.Lost.Tunlet, batches, rep.Events.Lost.Tunlet)
	}
}

// TestNewsOverflow lets more news pile up than a tunlet may.
func TestNewsOverflow(t *testing.T) {
	r := newRig(t, core.ModeTune)
	a := newScripted(t, "a", nil)
	a.block = make(chan struct{})
	defer close(a.block)
	r.session.TunletReady(a)
	r.connect("ac1", 1)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{}}})
	r.session.post(func() {
		for i := range maxNews + newsOfProcess + 2 {
			r.session.tunlets.running["a"].processStarted(&attunev1.Process{Handle: uint64(i)}, true)
		}
	})
	r.until("killed", func(*report.Report) bool {
		return get(a, func() bool { return a.killed == "it does not keep up with what it is told" })
	})
}

// TestTunletOfManyProcesses has a tunlet begin in a job of more processes than calls may wait
// in a small one.
func TestTunletOfManyProcesses(t *testing.T) {
	r := newRig(t, core.ModeTune)
	const processes = maxNews + 1000
	var handles []uint64
	for n := range uint64(processes) {
		handles = append(handles, n+1)
	}
	r.connect("ac1", handles...)
	r.grow()
	a := newScripted(t, "a", nil)
	r.session.TunletReady(a)
	r.settle("a")
	told, killed := get(a, func() int { return len(a.told) }), get(a, func() string { return a.killed })
	if told != 1+processes || killed != "" { // of the application first
		t.Errorf("told of %d processes, want %d; killed because %q", told-1, processes, killed)
	}
}

// TestInboxOverflow blocks the loop: data is dropped and counted, the publisher
// is not held up, and who wants records is told before the process' end.
func TestInboxOverflow(t *testing.T) {
	r := newRig(t, core.ModeTune)
	wants := newScripted(t, "wants", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("p", "malloc")}})
	r.session.TunletReady(wants)
	r.connect("ac1", 1)
	r.report() // the process is known before time passes
	r.tick()
	r.settle("wants")
	gate := make(chan struct{})
	r.session.post(func() { <-gate })
	for range 2 * inboxSize {
		r.records("ac1", 1, 1, 2)
	}
	big := make([]byte, inboxBytes)
	count := uint64(len(big) / attunev1.RecordSize)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Records{Records: &attunev1.RecordBatch{Process: 1, Records: big, RecordCount: count}}})
	close(gate)
	rep := r.report()
	total := 2*2*inboxSize + count
	if e := rep.Events; e.Records+e.Lost.Analyzer != total || e.Records < inboxSize || e.Lost.Analyzer < count {
		t.Errorf("events %+v, want %d in all", e, total)
	}
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 1}}})
	r.report()
	r.settle("wants")
	if lost, e := lostOf(wants), r.report().Events.Lost; lost != e.Analyzer+e.Tunlet {
		t.Errorf("the tunlet was told of %d lost records, want %d and %d", lost, e.Analyzer, e.Tunlet)
	}
}

// TestEndWaitsForNobody ends a session with a tunlet that does not answer: the program has
// ended, and whoever waits for it is not to wait for a tunlet.
func TestEndWaitsForNobody(t *testing.T) {
	t.Parallel()
	r := newRigThatWaits(t, core.ModeTune, time.Hour)
	r.connect("ac1", 1)
	r.grow()
	a := newScripted(t, "a", nil)
	a.block = make(chan struct{})
	defer close(a.block)
	r.session.TunletReady(a)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{Samples: []*attunev1.Sample{{Process: 1}}}}})
	if err := r.session.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = "tunlet a did not answer within 5s at the end, and was not waited for"
	if remarks := r.report().Remarks; len(remarks) == 0 || remarks[len(remarks)-1].Text != want {
		t.Errorf("remarks %+v, want %q", remarks, want)
	}
}

// fill fills the inbox of a session. Its loop is at work meanwhile.
func fill(s *Session) {
	for {
		select {
		case s.messages <- func() {}:
		default:
			return
		}
	}
}

// TestTroubleWithFullInbox: what a node has to say of the owner's objective is written down
// in the loop, for which nobody else makes room in the inbox.
func TestTroubleWithFullInbox(t *testing.T) {
	var r *rig
	r = newRigWith(t, Config{
		Core: core.Config{Mode: core.ModeTune}, callTimeout: time.Hour,
		Part: func(controller string, part *attunev1.ObjectivePart) string {
			fill(r.session)
			return controller + ": " + part.GetTrouble()
		},
	})
	r.connect("ac1", 1)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Objective{Objective: &attunev1.ObjectivePart{Trouble: "no such file"}}})
	if remarks := reportSoon(t, r).Remarks; len(remarks) != 1 || remarks[0].Text != "ac1: no such file" {
		t.Errorf("remarks %+v", remarks)
	}
}

// reportSoon is the report of a session whose loop goes on.
func reportSoon(t *testing.T, r *rig) *report.Report {
	t.Helper()
	made := make(chan *report.Report, 1)
	go func() { made <- r.report() }()
	select {
	case rep := <-made:
		return rep
	case <-time.After(patience.Limit):
		t.Fatal("the loop is blocked")
		panic("not reached")
	}
}

// TestRequestsOfFullInbox: who asks a session that does not keep up waits no longer than
// they wanted to.
func TestRequestsOfFullInbox(t *testing.T) {
	for name, request := range map[string]func(context.Context, *Session) error{
		"view": func(ctx context.Context, s *Session) error {
			_, err := View(ctx, s, func(time.Duration) int { return 0 })
			return err
		},
		"await": func(ctx context.Context, s *Session) error { return s.Await(ctx, func() bool { return true }) },
		"tell":  func(ctx context.Context, s *Session) error { return s.TellWithin(ctx, &attunev1.RecordingFrame{}) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, core.ModeTune)
			began, gate := make(chan struct{}), make(chan struct{})
			defer close(gate)
			r.session.post(func() { close(began); <-gate })
			<-began
			fill(r.session)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			answer := make(chan error, 1)
			go func() { answer <- request(ctx, r.session) }()
			select {
			case err := <-answer:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v", err)
				}
			case <-time.After(patience.Limit):
				t.Error("still waiting")
			}
		})
	}
}

// TestValuesThatAreLeftOut: nobody sees a value of the owner's objective that nothing can be
// judged by, and one remark says so.
func TestValuesThatAreLeftOut(t *testing.T) {
	r := newRigWith(t, Config{Core: core.Config{Mode: core.ModeTune, Objective: &attunev1.Objective{Name: "score"}}})
	for _, value := range []float64{-0.5, 7, math.Inf(1), math.NaN()} {
		r.session.Measured(value, r.time())
	}
	rep := r.report()
	if o := rep.Objective; o.Values != 1 || *o.Mean != 7 {
		t.Errorf("objective %+v", o)
	}
	if len(rep.Remarks) != 1 || !strings.HasPrefix(rep.Remarks[0].Text, "your objective: values that are below 0") {
		t.Errorf("remarks %+v", rep.Remarks)
	}
}
