// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// sleepyInfo describes a tunlet that is of use from 1,000 page faults a second.
func sleepyInfo(name string) *attunev1.DescribeResponse {
	return &attunev1.DescribeResponse{Name: name, Version: "1", Wake: []*attunev1.Wake{{
		Levels: []*attunev1.Level{{Series: uint32(series.MinorFaults), AtLeast: 1000}},
	}}}
}

// sleeps has a tunlet sleep, and returns what counts how often it is woken.
func (r *rig) sleeps(name string) *int {
	woken := new(int)
	r.session.TunletAsleep(sleepyInfo(name), func() { *woken++ })
	r.report()
	return woken
}

// faults publishes a round of samples, at so many milliseconds, of a process of
// ac1 with so many faults.
func (r *rig) faults(ms int64, process uint64, count float64) {
	r.session.Publish("ac1", &attunev1.PublishRequest{Event: &attunev1.PublishRequest_Samples{Samples: &attunev1.SampleBatch{
		UnixNano: ms * 1e6, Samples: []*attunev1.Sample{{Process: process, Tables: []*attunev1.Table{
			series.SignalTable(series.Reading{ID: series.MinorFaults, Value: uint64(count)}),
		}}},
	}}})
	r.report()
}

// samplesOf shows what samples a tunlet got: process@milliseconds.
func samplesOf(s *scripted) string {
	return get(s, func() string {
		var out []string
		for _, e := range s.events {
			for _, sample := range e.GetSamples().GetSamples() {
				out = append(out, fmt.Sprintf("%d@%d", sample.GetProcess(), e.GetSamples().GetUnixNano()/1e6))
			}
		}
		return strings.Join(out, " ")
	})
}

// TestWakes follows a tunlet from its sleep to its first samples: nothing that
// it needs gets lost while it is being started.
func TestWakes(t *testing.T) {
	r := newRig(t, core.ModeTune)
	link := r.connect("ac1", 7)
	woken := r.sleeps("a")
	if r.report(); link.paces()[len(link.paces())-1] == 0 {
		t.Error("nobody samples for a tunlet that sleeps")
	}
	r.faults(0, 7, 0) // too young: the tunlets do not know the process
	r.grow()
	for ms, count := range []float64{0, 10, 20, 30, 530, 540, 1e6} {
		r.faults(int64(ms+1)*100, 7, count)
		if want := ms >= 4; (*woken > 0) != want {
			t.Fatalf("after %g faults: woken %d times", count, *woken)
		}
	}
	if *woken != 1 {
		t.Errorf("woken %d times", *woken)
	}
	a := newScripted(t, "a", nil)
	r.session.TunletReady(a)
	r.settle("a")
	r.faults(800, 7, 1e6)
	r.settle("a")
	if diff := cmp.Diff([]string{"application s1 tune", "process 1 pid 7 update false"}, a.told); diff != "" {
		t.Errorf("told: %s", diff)
	}
	if got, want := samplesOf(a), "1@400 1@500 1@600 1@700 1@800"; got != want {
		t.Errorf("samples %q, want %q", got, want)
	}
	var said []string
	for _, e := range r.entries {
		if e.Kind == "tunlet" {
			said = append(said, fmt.Sprintf("%s %d", e.Text, e.Process))
		}
	}
	want := []string{
		"asleep, version 1 0", "woken by a process with minor_faults of at least 1000 per second 7", "running, version  0",
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

// TestWakingIsBounded keeps the latest samples of a tunlet that takes long.
func TestWakingIsBounded(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1", 7)
	r.sleeps("a")
	r.sleeps("b")
	r.grow()
	const rounds = 3 * maxWaking
	for i := range int64(rounds) {
		r.faults(i*100, 7, float64(i)*1e6)
	}
	a := newScripted(t, "a", nil)
	r.session.TunletReady(a)
	r.settle("a")
	got := strings.Fields(samplesOf(a))
	if len(got) != maxWaking || got[len(got)-1] != fmt.Sprintf("1@%d", (rounds-1)*100) {
		t.Errorf("%d samples, the last %s", len(got), got[len(got)-1])
	}
	r.session.TunletGone("b", "it cannot be started")
	r.report()
	if n := len(r.session.sleepers.waking); n != 0 {
		t.Errorf("samples of %d tunlets are kept for nobody", n)
	}
}

// TestNobodyWakesAtTheEnd has the symptom come when the application is over.
func TestNobodyWakesAtTheEnd(t *testing.T) {
	r := newRig(t, core.ModeTune)
	r.connect("ac1", 7)
	woken := r.sleeps("a")
	r.grow()
	r.faults(100, 7, 0)
	if err := r.session.Settle(context.Background()); err != nil {
		t.Fatal(err)
	}
	r.faults(200, 7, 1e9)
	if err := r.session.Finish(context.Background()); err != nil || *woken != 0 {
		t.Errorf("woken %d times, %v", *woken, err)
	}
}

// TestKeptChangesWakeTheirTunlet goes on with the changes of an earlier session.
func TestKeptChangesWakeTheirTunlet(t *testing.T) {
	r := newRigWith(t, Config{Core: core.Config{Mode: core.ModeTune}, callTimeout: time.Hour, Inherit: []*attunev1.KeptChange{
		{Id: "c1", Tunlet: "a", Pid: 7, Knob: "k"},
	}})
	if woken := r.sleeps("a"); *woken != 1 {
		t.Error("nobody watches over the change")
	}
	if woken := r.sleeps("b"); *woken != 0 {
		t.Error("woken for somebody else's change")
	}
}
