// SPDX-License-Identifier: Apache-2.0

package samplefilter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// woken shows who wakes: tunlet@process.
func woken(list []Woken) string {
	var out []string
	for _, w := range list {
		out = append(out, fmt.Sprintf("%s@%d", w.Tunlet, w.Process))
	}
	return strings.Join(out, " ")
}

// wantWoken gives a round to w and checks who wakes, and with which samples
// from before.
func wantWoken(t *testing.T, w *Wakes, b *attunev1.SampleBatch, who, before string) {
	t.Helper()
	list, earlier := w.Round(b)
	if got := woken(list); got != who || text(earlier) != before {
		t.Errorf("at %d ms %q wakes with %q before, want %q with %q", b.GetUnixNano()/1e6, got, text(earlier), who, before)
	}
}

// oneWake is of one condition.
func oneWake(w *attunev1.Wake) []*attunev1.Wake { return []*attunev1.Wake{w} }

func TestWakes(t *testing.T) {
	w := &Wakes{}
	w.Process(1, []string{"/lib/libc.so.6"})
	w.Add("rate", oneWake(&attunev1.Wake{Levels: []*attunev1.Level{level(faults, 100)}}))
	w.Add("object", oneWake(&attunev1.Wake{Object: "libmpi.so*"}))
	w.Add("both", []*attunev1.Wake{
		{Object: "libother.so*", Levels: []*attunev1.Level{level(faults, 0)}},
		{Object: "libmpi.so*", Levels: []*attunev1.Level{level(faults, 500), level(threads, 4)}},
	})
	w.Process(2, []string{"/lib/libc.so.6"})
	wantWoken(t, w, round(0, map[uint64]float64{1: 0, 2: 0, 3: 0}), "", "")
	wantWoken(t, w, round(100, map[uint64]float64{1: 9, 2: 0, 3: 1e6}), "", "") // 3 is not known
	wantWoken(t, w, round(200, map[uint64]float64{1: 9, 2: 10}), "rate@2", "100:12")
	w.Process(2, []string{"/opt/mpi/libmpi.so.40", "/lib/libc.so.6"})
	wantWoken(t, w, round(300, map[uint64]float64{1: 1e9, 2: 10}), "object@2", "200:12")
	if w.Empty() {
		t.Error("one sleeps on")
	}
	wantWoken(t, w, round(400, map[uint64]float64{1: 2e9, 2: 60}), "both@2", "300:12")
	if !w.Empty() {
		t.Error("nobody sleeps any more")
	}
}

// All levels at once: the one alone and the other alone are not enough.
func TestAllLevelsTogether(t *testing.T) {
	w := &Wakes{}
	w.Process(1, nil)
	w.Add("a", oneWake(&attunev1.Wake{Levels: []*attunev1.Level{level(faults, 1), level(threads, 5)}}))
	w.Add("b", oneWake(&attunev1.Wake{Levels: []*attunev1.Level{level(faults, 1), level(threads, 4)}}))
	w.Round(round(0, map[uint64]float64{1: 0}))
	wantWoken(t, w, round(1000, map[uint64]float64{1: 1}), "b@1", "0:1")
}

func TestLasting(t *testing.T) {
	lasting := int64(150 * time.Millisecond)
	w := &Wakes{}
	w.Process(1, nil)
	w.Add("a", oneWake(&attunev1.Wake{Levels: []*attunev1.Level{level(faults, 100)}, LastingNanos: lasting}))
	w.Add("g", oneWake(&attunev1.Wake{Levels: []*attunev1.Level{level(threads, 4)}, LastingNanos: lasting}))
	wantWoken(t, w, round(0, map[uint64]float64{1: 0}), "", "")
	wantWoken(t, w, round(100, map[uint64]float64{1: 20}), "", "")
	wantWoken(t, w, round(200, map[uint64]float64{1: 20}), "g@1", "100:1") // the rate broke off
	wantWoken(t, w, round(300, map[uint64]float64{1: 40}), "", "")
	wantWoken(t, w, round(400, map[uint64]float64{1: 60}), "a@1", "300:1")
}

// What happens now and then is not in every sample of a time, but on its average.
func TestAveraged(t *testing.T) {
	w := &Wakes{}
	w.Process(1, nil)
	levels := []*attunev1.Level{level(faults, 15)}
	w.Add("average", oneWake(&attunev1.Wake{Levels: levels, LastingNanos: int64(200 * time.Millisecond), Averaged: true}))
	w.Add("each", oneWake(&attunev1.Wake{Levels: levels, LastingNanos: int64(200 * time.Millisecond)}))
	wantWoken(t, w, round(0, map[uint64]float64{1: 0}), "", "")
	wantWoken(t, w, round(100, map[uint64]float64{1: 2}), "", "")
	wantWoken(t, w, round(200, map[uint64]float64{1: 2}), "", "") // 10 per second
	wantWoken(t, w, round(300, map[uint64]float64{1: 5}), "", "")
	wantWoken(t, w, round(400, map[uint64]float64{1: 5}), "average@1", "300:1") // 15, but not in each
}

// looked shows of whom details are wanted.
func looked(w *Wakes) string {
	var out []string
	for id := range uint64(10) {
		for _, kind := range w.Details(id) {
			out = append(out, fmt.Sprintf("%v of %d", series.TableID(kind), id))
		}
	}
	return strings.Join(out, " ")
}

// withSocketsOf adds what was read of process 1's sockets to a round.
func withSocketsOf(b *attunev1.SampleBatch, total int) *attunev1.SampleBatch {
	details := series.Details{Sockets: &series.Rows[series.Socket]{Total: total}}
	b.Samples[0].Tables = append(b.Samples[0].Tables, details.Tables()...)
	return b
}

// TestDetail follows a process without sockets, in which nobody looks for some at a
// time, to its first one.
func TestDetail(t *testing.T) {
	const sockets = uint32(series.TableSockets)
	const look = "sockets of 1"
	w := &Wakes{}
	w.Process(1, nil)
	w.Add("a", oneWake(&attunev1.Wake{Levels: []*attunev1.Level{level(faults, 100)}, Table: sockets}))
	for _, step := range []struct {
		ms    int
		count float64
		read  int // sockets; -1: they were not read
		who   string
		looks string
	}{
		{0, 0, -1, "", ""},
		{100, 5, 1, "", ""}, // another tunlet has them read; the rest is not so
		{200, 20, -1, "", look},
		{300, 20, 0, "", ""},
		{5200, 1e3, -1, "", ""}, // too soon
		{5400, 2e3, -1, "", look},
		{7400, 2e3, -1, "", look}, // the rest need not be so meanwhile
		{7500, 2e3, -1, "", ""},   // nobody can read them
		{7600, 3e3, -1, "", look},
		{7700, 3e3, 1, "a@1", ""},
	} {
		b := round(step.ms, map[uint64]float64{1: step.count})
		if step.read >= 0 {
			withSocketsOf(b, step.read)
		}
		list, _ := w.Round(b)
		if got := woken(list); got != step.who || looked(w) != step.looks {
			t.Errorf("at %d ms %q wakes and %q is looked for, want %q and %q", step.ms, got, looked(w), step.who, step.looks)
		}
	}
}

// TestDetailOfWhoEnds is looked for no longer.
func TestDetailOfWhoEnds(t *testing.T) {
	w := &Wakes{}
	w.Process(1, nil)
	w.Add("a", oneWake(&attunev1.Wake{Levels: []*attunev1.Level{level(threads, 4)}, Table: uint32(series.TablePipes)}))
	wantWoken(t, w, round(0, map[uint64]float64{1: 0}), "", "")
	if got, want := looked(w), "pipes of 1"; got != want {
		t.Errorf("looks for %q, want %q", got, want)
	}
	w.Forget(1)
	if got := looked(w); got != "" {
		t.Errorf("looks for %q of nobody", got)
	}
}

// A process that ends and a tunlet that comes later.
func TestForgottenAndLate(t *testing.T) {
	w := &Wakes{}
	w.Process(1, []string{"/lib/libmpi.so.40"})
	w.Forget(1)
	w.Add("late", oneWake(&attunev1.Wake{Object: "libmpi.so*"}))
	wantWoken(t, w, round(0, map[uint64]float64{1: 0}), "", "")
	if w.Expects(200 * time.Millisecond) {
		t.Error("something is expected of a process that has ended")
	}
	w.Process(2, []string{"/lib/libmpi.so.40"})
	w.Add("late", oneWake(&attunev1.Wake{Object: "libmpi.so*", LastingNanos: int64(200 * time.Millisecond)}))
	if w.Expects(200 * time.Millisecond) {
		t.Error("something is expected sooner than a condition can hold")
	}
	w.Add("late", oneWake(&attunev1.Wake{Object: "libmpi.so*"})) // again, as after news of it
	if !w.Expects(200 * time.Millisecond) {
		t.Error("nothing is expected of a process with the library")
	}
	wantWoken(t, w, round(100, map[uint64]float64{2: 0}), "late@2", "")
	if w.Expects(200 * time.Millisecond) {
		t.Error("something is expected though nobody sleeps")
	}
}

func TestText(t *testing.T) {
	wait := level(series.RunqueueWait, 1e8)
	for want, w := range map[string]*attunev1.Wake{
		"anything":   {},
		"libmpi.so*": {Object: "libmpi.so*"},
		"threads of at least 3, for 1s, with sockets": {
			Levels: []*attunev1.Level{level(threads, 3)}, LastingNanos: 1e9, Table: uint32(series.TableSockets),
		},
		"threads of at least 3, for 1s": {Levels: []*attunev1.Level{level(threads, 3)}, LastingNanos: 1e9},
		"a and minor_faults of at least 500 per second and runqueue_wait of at least 100ms per second": {
			Object: "a", Levels: []*attunev1.Level{level(faults, 500), wait},
		},
	} {
		if got := Text(w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Twenty sleeping tunlets and a hundred processes: what a round costs.
func BenchmarkWakes(b *testing.B) {
	w := &Wakes{}
	batch := &attunev1.SampleBatch{}
	for p := range uint64(100) {
		w.Process(p, []string{"/lib/libc.so.6", "/lib/libmpi.so.40"})
		var readings []series.Reading
		for signal := range series.ID(12) {
			readings = append(readings, series.Reading{ID: signal + 1, Value: 1})
		}
		batch.Samples = append(batch.Samples, &attunev1.Sample{Process: p, Tables: []*attunev1.Table{series.SignalTable(readings...)}})
	}
	for i := range 20 {
		w.Add(fmt.Sprint(i), []*attunev1.Wake{
			{Levels: []*attunev1.Level{level(faults, 1e9), level(threads, 4)}},
			{Object: "libmpi.so*", Levels: []*attunev1.Level{level(faults, 1e9)}},
		})
	}
	for b.Loop() {
		batch.UnixNano += 250e6
		if list, _ := w.Round(batch); len(list) > 0 {
			b.Fatal(list)
		}
	}
}
