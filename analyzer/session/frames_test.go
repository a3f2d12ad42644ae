// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// frames collects what a session has recorded, ticks left out.
type frames struct {
	mu   sync.Mutex
	list []*attunev1.RecordingFrame
}

func (f *frames) Take(frame *attunev1.RecordingFrame) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if frame.GetTick() == nil {
		f.list = append(f.list, proto.CloneOf(frame))
	}
}

// texts are the frames in short: kind, with whom or what it is about.
func (f *frames) texts() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, frame := range f.list {
		text := fmt.Sprintf("%T", frame.GetWhat())[len("*attunev1.RecordingFrame_"):]
		switch k := frame.GetWhat().(type) {
		case *attunev1.RecordingFrame_ProcessStarted:
			text += fmt.Sprintf(" %d", k.ProcessStarted.GetProcess().GetHandle())
		case *attunev1.RecordingFrame_ProcessEnded:
			text += fmt.Sprintf(" %d", k.ProcessEnded.GetProcess())
		case *attunev1.RecordingFrame_Samples:
			text += fmt.Sprintf(" %d", k.Samples.GetSamples()[0].GetProcess())
		case *attunev1.RecordingFrame_Aggregates:
			text += fmt.Sprintf(" %d of %d", len(k.Aggregates.GetAggregates()), k.Aggregates.GetAggregates()[0].GetProcess())
		case *attunev1.RecordingFrame_Records:
			text += fmt.Sprintf(" %d of %d", len(k.Records.GetRecords())/attunev1.RecordSize, k.Records.GetProcess())
		case *attunev1.RecordingFrame_PointStatus:
			text += fmt.Sprintf(" %d in %d", k.PointStatus.GetPoint(), k.PointStatus.GetProcess())
		case *attunev1.RecordingFrame_Decision:
			text += " " + k.Decision.GetKind()
		case *attunev1.RecordingFrame_Notice:
			text += " " + k.Notice.GetRequest().GetState().String()
		}
		out = append(out, text)
	}
	return out
}

func newRecordedRig(t *testing.T) (*rig, *frames) {
	f := &frames{}
	return newRigWith(t, Config{
		Core: core.Config{Mode: core.ModeAdvise}, callTimeout: time.Hour, Command: []string{"solver"}, Sinks: []Sink{f},
	}), f
}

// TestRecording has a tunlet ask for a point and propose a change, and looks at
// what is recorded: handles and indexes are the session's, not the controller's.
func TestRecording(t *testing.T) {
	r, got := newRecordedRig(t)
	a := newScripted(t, "a", &attunev1.Reaction{AddPoints: []*attunev1.MeasurePoint{hook("mine", "malloc")}})
	r.connect("ac1", 7)
	r.grow()
	r.session.TunletReady(a)
	r.settle("a")
	publish := func(m *attunev1.PublishRequest) { r.session.Publish("ac1", m) }
	r.session.Manage("ac1", &attunev1.ManageRequest{Message: &attunev1.ManageRequest_Point{Point: &attunev1.PointStatus{Point: 1, Process: 7}}})
	publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{
		Samples: []*attunev1.Sample{{Process: 8}, {Process: 7}},
	}}})
	publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_Aggregates{Aggregates: &attunev1.AggregateBatch{
		Aggregates: []*attunev1.Aggregate{{Point: 9, Process: 7}, {Point: 1, Process: 8}, {Point: 1, Process: 7}},
	}}})
	r.records("ac1", 7, 1, 9)
	r.react("a", &attunev1.Reaction{Proposals: []*attunev1.Proposal{{Id: "p", Changes: []*attunev1.Change{{
		Process: 1, Knob: "k", Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "k"}}},
	}}}}})
	publish(&attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{ProcessEnded: &attunev1.ProcessEnded{Process: 7}}})
	r.settle("a") // nothing that waits for it is lost
	r.session.TunletGone("a", "test")
	r.report()
	want := []string{
		"Header", "Controller", "Process", "ProcessStarted 1", "Tunlet", "Reaction", "Point", "Asked", "PointStatus 1 in 1",
		"Samples 1", "Aggregates 2 of 1", "Records 2 of 1",
		"Reaction", "Decision advised", "Notice PROPOSAL_STATE_ADVISED",
		"ProcessGone", "ProcessEnded 1", "Asked", "PointEnd", "TunletEnd", "Proposal",
	}
	if diff := cmp.Diff(want, got.texts()); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
}

// TestWantKeepsThePace: a process in which nothing happens is sampled as often as
// somebody wants, although no tunlet is there.
func TestWantKeepsThePace(t *testing.T) {
	r, _ := newRecordedRig(t)
	r.ask("recorder", nil, &attunev1.Want{PeriodNanos: 1})
	l := r.connect("ac1", 7)
	for range 100 {
		r.tick()
	}
	if diff := cmp.Diff([]time.Duration{50 * time.Millisecond}, l.paces()); diff != "" {
		t.Errorf("told to sample every (-want +got):\n%s", diff)
	}
}

// TestRecordedTimeNeverRunsBackwards sets the clock back.
func TestRecordedTimeNeverRunsBackwards(t *testing.T) {
	r, got := newRecordedRig(t)
	r.tick()
	r.mu.Lock()
	r.now = r.now.Add(-time.Hour)
	r.mu.Unlock()
	r.connect("ac1", 7)
	r.tick()
	if err := r.session.Settle(context.Background()); err != nil {
		t.Fatal(err)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	last := int64(0)
	for _, f := range got.list {
		if f.GetAtNanos() < last {
			t.Errorf("%v after %v", time.Duration(f.GetAtNanos()), time.Duration(last))
		}
		last = f.GetAtNanos()
	}
}
