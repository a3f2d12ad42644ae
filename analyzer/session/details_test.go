// SPDX-License-Identifier: Apache-2.0

package session

import (
	"maps"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	threadKind = uint32(series.TableThreads)
	socketKind = uint32(series.TableSockets)
)

// asked returns what a controller reads beside the signals, and how often that changed.
func (l *link) asked() (last asked, times int) {
	var before []*attunev1.TableWant
	for _, w := range l.wanted() {
		if slices.EqualFunc(before, w.GetTables(), func(a, b *attunev1.TableWant) bool { return proto.Equal(a, b) }) {
			continue
		}
		before, last = w.GetTables(), asked{}
		times++
		for _, t := range before {
			last[t.GetProcess()] = t.GetTables()
		}
	}
	return last, times
}

// wants has a tunlet of the session ask for details.
func (r *rig) wants(tunlet string, process uint64, kinds ...uint32) {
	r.session.post(func() {
		r.session.tunlets.react(r.session.tunlets.running[tunlet], &attunev1.Reaction{
			Wants: []*attunev1.TableWant{{Process: process, Tables: kinds}},
		})
	})
	r.report()
}

func (l *link) wantAsked(t *testing.T, what string, times int, want asked) {
	t.Helper()
	last, n := l.asked()
	if n != times || !maps.EqualFunc(last, want, slices.Equal) {
		t.Errorf("%s: asked %d times, last %v; want %d times, %v", what, n, last, times, want)
	}
}

type asked = map[uint64][]uint32

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

// Each controller is asked at once for what all tunlets together want of its processes,
// if that has changed.
func TestDetailsGoToTheirController(t *testing.T) {
	r, first, second := detailRig(t)
	first.wantAsked(t, "at first", 0, nil)
	r.wants("a", 1, socketKind, threadKind, socketKind)
	first.wantAsked(t, "one tunlet", 1, asked{7: {threadKind, socketKind}})
	r.wants("b", 1, threadKind)
	r.wants("b", 99, threadKind)
	r.tick()
	first.wantAsked(t, "what it reads already", 1, asked{7: {threadKind, socketKind}})
	r.wants("b", 2, threadKind)
	first.wantAsked(t, "two tunlets", 2, asked{7: {threadKind, socketKind}, 8: {threadKind}})
	second.wantAsked(t, "the other controller", 0, nil)
	r.wants("a", 3, socketKind)
	second.wantAsked(t, "another handle", 1, asked{7: {socketKind}})
	r.wants("a", 1)
	first.wantAsked(t, "one is left", 3, asked{7: {threadKind}, 8: {threadKind}})
	r.wants("a", 1, threadKind)
	r.tick()
	first.wantAsked(t, "what is left already", 3, asked{7: {threadKind}, 8: {threadKind}})
}

// What goes takes its wishes along.
func TestDetailsEnd(t *testing.T) {
	r, first, second := detailRig(t)
	r.wants("a", 1, socketKind)
	r.wants("b", 1, threadKind)
	r.wants("b", 3, threadKind)
	r.tick()
	r.session.TunletGone("b", "it crashed")
	r.report()
	r.tick()
	first.wantAsked(t, "a tunlet is gone", 3, asked{7: {socketKind}})
	second.wantAsked(t, "a tunlet is gone", 2, asked{})
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_ProcessEnded{
		ProcessEnded: &attunev1.ProcessEnded{Process: 7},
	}})
	r.wants("a", 2, socketKind)
	r.wants("a", 1, threadKind)
	r.tick()
	first.wantAsked(t, "a process has ended", 5, asked{8: {socketKind}})
}

// A controller that comes back knows of nothing, and is asked again.
func TestDetailsAfterReconnect(t *testing.T) {
	r := newRigWith(t, Config{Core: core.Config{Mode: core.ModeTune}, callTimeout: patience.Limit, Grace: patience.Limit})
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
		UnixNano: 1, Samples: []*attunev1.Sample{{Process: 7, Tables: (&series.Details{
			Threads: &series.Rows[series.Thread]{Total: 5}, Sockets: &series.Rows[series.Socket]{Total: 6},
		}).Tables()}},
	}}})
	r.report()
	r.settle("a", "b")
	details := func(s *scripted) series.Details {
		return get(s, func() series.Details { return series.DetailsFrom(s.events[0].GetSamples().GetSamples()[0].GetTables()) })
	}
	if d := details(a); d.Threads == nil || d.Threads.Total != 5 || d.Sockets != nil {
		t.Errorf("a got %v", d)
	}
	if d := details(b); d.Threads != nil || d.Sockets != nil {
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
				Process: 7, Tables: append((&series.Details{Threads: &series.Rows[series.Thread]{Total: 5}}).Tables(),
					series.SignalTable(series.Reading{ID: series.MinorFaults, Value: uint64(ms) * 1e6})),
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
		if d := series.DetailsFrom(sample.GetTables()); d.Threads != nil {
			t.Errorf("details of a sample: %v", sample)
		}
	}
}

// Details that would wake a tunlet are read until they have been looked at.
func TestDetailsForWhoSleeps(t *testing.T) {
	r := newRig(t, core.ModeTune)
	info := sleepyInfo("a")
	info.Wake[0].Table = socketKind
	woken := 0
	r.session.TunletAsleep(info, func() { woken++ })
	l := r.connect("ac1", 7)
	r.grow()
	read := func(ms int64, faults float64, details *series.Details) {
		r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{
			UnixNano: ms * 1e6, Samples: []*attunev1.Sample{{
				Process: 7, Tables: append(details.Tables(), series.SignalTable(series.Reading{ID: series.MinorFaults, Value: uint64(faults)})),
			}},
		}}})
		r.report()
		r.tick()
	}
	read(0, 0, &series.Details{})
	l.wantAsked(t, "at first", 0, nil)
	read(100, 1000, &series.Details{})
	l.wantAsked(t, "the rest is so", 1, asked{7: {socketKind}})
	read(200, 2000, &series.Details{Sockets: &series.Rows[series.Socket]{}})
	l.wantAsked(t, "there is none", 2, asked{})
	read(6000, 1e6, &series.Details{})
	l.wantAsked(t, "later", 3, asked{7: {socketKind}})
	if woken != 0 {
		t.Error("woken without a socket")
	}
	read(6100, 2e6, &series.Details{Sockets: &series.Rows[series.Socket]{Total: 1}})
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
	sockets.Wake[0].Table = socketKind
	pipes.Wake[0].Table, pipes.Wake[0].Levels[0].AtLeast = uint32(series.TablePipes), 1e6
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
	l.wantAsked(t, "for both", 2, asked{7: {socketKind, uint32(series.TablePipes)}})
}
