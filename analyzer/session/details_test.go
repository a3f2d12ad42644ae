// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	threadKind = attunev1.DetailKind_DETAIL_KIND_THREADS
	socketKind = attunev1.DetailKind_DETAIL_KIND_SOCKETS
)

// asked returns what a controller was last asked for, by its own handles, and
// how often it was asked.
func (l *link) asked() (last map[uint64][]attunev1.DetailKind, times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.sent {
		if d := m.GetDetails(); d != nil {
			times++
			last = map[uint64][]attunev1.DetailKind{}
			for _, p := range d.GetProcesses() {
				last[p.GetProcess()] = p.GetKinds()
			}
		}
	}
	return last, times
}

// wants has a tunlet of the session ask for details.
func (r *rig) wants(tunlet string, process uint64, kinds ...attunev1.DetailKind) {
	r.session.post(func() {
		r.session.react(r.session.tunlets[tunlet], &attunev1.Reaction{
			Details: []*attunev1.DetailInterest{{Process: process, Kinds: kinds}},
		})
	})
	r.report()
}

func (l *link) wantAsked(t *testing.T, what string, times int, want map[uint64][]attunev1.DetailKind) {
	t.Helper()
	last, n := l.asked()
	got, expected := &attunev1.SetDetails{}, &attunev1.SetDetails{}
	for handle := uint64(0); handle < 20; handle++ {
		if kinds, ok := last[handle]; ok {
			got.Processes = append(got.Processes, &attunev1.DetailInterest{Process: handle, Kinds: kinds})
		}
		if kinds, ok := want[handle]; ok {
			expected.Processes = append(expected.Processes, &attunev1.DetailInterest{Process: handle, Kinds: kinds})
		}
	}
	if n != times || !proto.Equal(got, expected) {
		t.Errorf("%s: asked %d times, last %v; want %d times, %v", what, n, last, times, want)
	}
}

type asked = map[uint64][]attunev1.DetailKind

// detailRig has two tunlets and two controllers, with processes 7 and 8 (1 and 2
// to the tunlets) and 7 (3).
func detailRig(t *testing.T) (r *rig, first, second *link) {
	r = newRig(t, core.ModeTune)
	r.session.TunletReady(newScripted(t, "a", nil))
	r.session.TunletReady(newScripted(t, "b", nil))
	first, second = r.connect("ac1", 7, 8), r.connect("ac2", 7)
	r.tick()
	return r, first, second
}

// Each controller is asked for what all tunlets together want of its processes,
// once for all that was wanted within a tick.
func TestDetailsGoToTheirController(t *testing.T) {
	r, first, second := detailRig(t)
	first.wantAsked(t, "at first", 0, nil)
	r.wants("a", 1, socketKind, threadKind, socketKind)
	r.wants("b", 1, threadKind)
	r.wants("b", 2, threadKind)
	r.wants("b", 99, threadKind)
	first.wantAsked(t, "before the tick", 0, nil)
	r.tick()
	first.wantAsked(t, "two tunlets", 1, asked{7: {threadKind, socketKind}, 8: {threadKind}})
	second.wantAsked(t, "the other controller", 0, nil)
	r.wants("a", 3, socketKind)
	r.tick()
	second.wantAsked(t, "another handle", 1, asked{7: {socketKind}})
	r.wants("a", 1)
	r.tick()
	first.wantAsked(t, "one is left", 2, asked{7: {threadKind}, 8: {threadKind}})
	r.wants("a", 1, threadKind)
	r.tick()
	first.wantAsked(t, "what it reads already", 2, asked{7: {threadKind}, 8: {threadKind}})
}

// What goes takes its wishes along.
func TestDetailsEnd(t *testing.T) {
	r, first, second := detailRig(t)
	r.wants("a", 1, socketKind)
	r.wants("b", 1, threadKind)
	r.wants("b", 3, threadKind)
	r.tick()
	r.session.TunletGone("b", "it crashed", true)
	r.report()
	r.tick()
	first.wantAsked(t, "a tunlet is gone", 2, asked{7: {socketKind}})
	second.wantAsked(t, "a tunlet is gone", 2, asked{})
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{
		ProcessEnded: &attunev1.ProcessEnded{Process: 7},
	}})
	r.wants("a", 2, socketKind)
	r.wants("a", 1, threadKind)
	r.tick()
	first.wantAsked(t, "a process has ended", 3, asked{8: {socketKind}})
}

// A controller that comes back knows of nothing, and is asked again.
func TestDetailsAfterReconnect(t *testing.T) {
	r := newRigWith(t, Config{Core: core.Config{Mode: core.ModeTune}, callTimeout: patience, Grace: patience})
	r.session.TunletReady(newScripted(t, "a", nil))
	before := r.connect("ac1", 7)
	r.tick()
	r.wants("a", 1, socketKind)
	r.tick()
	before.wantAsked(t, "at first", 1, asked{7: {socketKind}})
	r.session.ControllerGone("ac1", before, false)
	r.wants("a", 1, threadKind)
	r.tick()
	after := &link{}
	r.session.ControllerConnected(&attunev1.ControllerHello{ControllerId: "ac1"}, after)
	r.session.EventsConnected(&attunev1.StreamHello{ControllerId: "ac1", Processes: []uint64{7}})
	r.report()
	r.tick()
	after.wantAsked(t, "back", 1, asked{7: {threadKind}})
}

// A tunlet gets the details that it asked for and no others.
func TestDetailsReachWhoAsked(t *testing.T) {
	r := newRig(t, core.ModeTune)
	a, b := newScripted(t, "a", nil), newScripted(t, "b", nil)
	r.session.TunletReady(a)
	r.session.TunletReady(b)
	r.connect("ac1", 7)
	r.grow()
	r.wants("a", 1, threadKind)
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{
		UnixNano: 1, Samples: []*attunev1.Sample{{Process: 7, Details: &attunev1.Details{
			Threads: &attunev1.ThreadDetails{Total: 5}, Sockets: &attunev1.SocketDetails{Total: 6},
		}}},
	}}})
	r.report()
	r.settle("a", "b")
	details := func(s *scripted) *attunev1.Details {
		return get(s, func() *attunev1.Details { return s.events[0].GetSamples().GetSamples()[0].GetDetails() })
	}
	if d := details(a); d.GetThreads().GetTotal() != 5 || d.GetSockets() != nil {
		t.Errorf("a got %v", d)
	}
	if d := details(b); d != nil {
		t.Errorf("b got %v without having asked", d)
	}
}

// What a tunlet missed while it was being started comes without the details that
// another one had asked for meanwhile.
func TestDetailsAreNotForWhoIsWoken(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.session.TunletReady(newScripted(t, "a", nil))
	woken := r.sleeps("b")
	r.connect("ac1", 7)
	r.grow()
	r.wants("a", 1, threadKind)
	for ms := range int64(3) {
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{
			UnixNano: ms * 1e8, Samples: []*attunev1.Sample{{
				Process: 7, Details: &attunev1.Details{Threads: &attunev1.ThreadDetails{Total: 5}},
				Tables: []*attunev1.Table{series.SignalTable(series.Reading{ID: series.MinorFaults, Value: uint64(ms) * 1e6})},
			}},
		}}})
	}
	r.report()
	if *woken != 1 {
		t.Fatalf("woken %d times", *woken)
	}
	b := newScripted(t, "b", nil)
	r.session.TunletReady(b)
	r.settle("b")
	samples := get(b, func() (all []*attunev1.Sample) {
		for _, e := range b.events {
			all = append(all, e.GetSamples().GetSamples()...)
		}
		return all
	})
	if len(samples) != 3 {
		t.Errorf("%d samples", len(samples))
	}
	for _, sample := range samples {
		if sample.GetDetails() != nil {
			t.Errorf("details of a sample: %v", sample)
		}
	}
}

// Details that would wake a tunlet are read until they have been looked at.
func TestDetailsForWhoSleeps(t *testing.T) {
	r := newRig(t, core.ModeTune)
	info := sleepyInfo("a")
	info.Wake[0].Detail = socketKind
	woken := 0
	r.session.TunletAsleep(info, func() { woken++ })
	l := r.connect("ac1", 7)
	r.grow()
	read := func(ms int64, faults float64, details *attunev1.Details) {
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{
			UnixNano: ms * 1e6, Samples: []*attunev1.Sample{{Process: 7, Details: details, Tables: []*attunev1.Table{
				series.SignalTable(series.Reading{ID: series.MinorFaults, Value: uint64(faults)}),
			}}},
		}}})
		r.report()
		r.tick()
	}
	read(0, 0, nil)
	l.wantAsked(t, "at first", 0, nil)
	read(100, 1000, nil)
	l.wantAsked(t, "the rest is so", 1, asked{7: {socketKind}})
	read(200, 2000, &attunev1.Details{Sockets: &attunev1.SocketDetails{}})
	l.wantAsked(t, "there is none", 2, asked{})
	read(6000, 1e6, nil)
	l.wantAsked(t, "later", 3, asked{7: {socketKind}})
	if woken != 0 {
		t.Error("woken without a socket")
	}
	read(6100, 2e6, &attunev1.Details{Sockets: &attunev1.SocketDetails{Total: 1}})
	l.wantAsked(t, "there is one", 4, asked{})
	if woken != 1 {
		t.Errorf("woken %d times", woken)
	}
}

// Two tunlets sleep that look for different details of one process, one after the
// other.
func TestDetailsForSeveralWhoSleep(t *testing.T) {
	r := newRig(t, core.ModeTune)
	sockets, pipes := sleepyInfo("a"), sleepyInfo("b")
	sockets.Wake[0].Detail = socketKind
	pipes.Wake[0].Detail, pipes.Wake[0].Levels[0].AtLeast = attunev1.DetailKind_DETAIL_KIND_PIPES, 1e6
	r.session.TunletAsleep(sockets, func() {})
	r.session.TunletAsleep(pipes, func() {})
	l := r.connect("ac1", 7)
	r.grow()
	faults := func(ms int64, count float64) {
		r.faults(ms, 7, count)
		r.tick()
	}
	faults(0, 0)
	faults(100, 1000)
	l.wantAsked(t, "for one", 1, asked{7: {socketKind}})
	faults(200, 1e6)
	l.wantAsked(t, "for both", 2, asked{7: {socketKind, attunev1.DetailKind_DETAIL_KIND_PIPES}})
}
