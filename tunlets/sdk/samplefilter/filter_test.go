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

const (
	faults  = series.MinorFaults
	threads = series.Threads
)

// round is one at so many milliseconds, of processes with their fault counts.
func round(ms int, counts map[uint64]float64) *attunev1.SampleBatch {
	b := &attunev1.SampleBatch{UnixNano: int64(time.Duration(ms) * time.Millisecond)}
	for p := uint64(1); p <= 9; p++ {
		if count, ok := counts[p]; ok {
			b.Samples = append(b.Samples, &attunev1.Sample{Process: p, Tables: []*attunev1.Table{series.SignalTable(
				series.Reading{ID: faults, Value: uint64(count)}, series.Reading{ID: threads, Value: 4},
			)}})
		}
	}
	return b
}

// text shows what passed: time:processes.
func text(batches []*attunev1.SampleBatch) string {
	var out []string
	for _, b := range batches {
		line := fmt.Sprintf("%d:", b.GetUnixNano()/1e6)
		for _, s := range b.GetSamples() {
			line += fmt.Sprint(s.GetProcess())
		}
		out = append(out, line)
	}
	return strings.Join(out, " ")
}

func level(signal series.ID, at float64) *attunev1.Level {
	return &attunev1.Level{Series: uint32(signal), AtLeast: at}
}

// part is a level that is a part of what another signal has.
func part(signal series.ID, at float64, of series.ID) *attunev1.Level {
	return &attunev1.Level{Series: uint32(signal), AtLeast: at, Of: uint32(of)}
}

const written = series.WrittenBytes

// with adds other signals to the samples of a round.
func with(b *attunev1.SampleBatch, bytes, resident uint64) *attunev1.SampleBatch {
	for _, s := range b.GetSamples() {
		s.Tables = append(s.Tables, series.SignalTable(
			series.Reading{ID: written, Value: bytes}, series.Reading{ID: series.ResidentBytes, Value: resident},
			series.Reading{ID: series.MajorFaults}, series.Reading{ID: series.CPUsAllowed, Value: 2},
		))
	}
	return b
}

func want(t *testing.T, f *Filter, b *attunev1.SampleBatch, passes string) {
	t.Helper()
	if got := text(f.Pass(b)); got != passes {
		t.Errorf("at %d ms %q passes, want %q", b.GetUnixNano()/1e6, got, passes)
	}
}

func TestPass(t *testing.T) {
	var f Filter
	want(t, &f, round(0, map[uint64]float64{1: 0, 2: 0, 3: 0}), "0:123")
	f.Set(&attunev1.SampleInterest{Process: 1}) // none
	f.Set(&attunev1.SampleInterest{Process: 2, Levels: []*attunev1.Level{level(faults, 100)}})
	want(t, &f, round(100, map[uint64]float64{1: 1e6, 2: 1e6, 3: 0}), "100:3") // no rate is known yet
	want(t, &f, round(200, map[uint64]float64{1: 2e6, 2: 1e6 + 9, 3: 0}), "200:3")
	want(t, &f, round(300, map[uint64]float64{1: 3e6, 2: 1e6 + 19, 3: 0}), "200:2 300:23") // 10 in 0.1 s
	want(t, &f, round(400, map[uint64]float64{1: 4e6, 2: 1e6 + 19, 3: 0}), "400:23")       // woken for good
	f.Set(&attunev1.SampleInterest{Process: 1, All: true})
	want(t, &f, round(500, map[uint64]float64{1: 5e6, 2: 0}), "500:12")
	want(t, &f, round(600, nil), "600:")
}

// TestPassAfter: what waits for some time to pass gets all samples then, from the one before on,
// and sooner where a level is reached. Each interest begins the time anew.
func TestPassAfter(t *testing.T) {
	var f Filter
	f.Set(&attunev1.SampleInterest{Process: 1, AfterNanos: 250e6})
	f.Set(&attunev1.SampleInterest{Process: 2, AfterNanos: 250e6, Levels: []*attunev1.Level{level(faults, 100)}})
	f.Set(&attunev1.SampleInterest{Process: 3})
	want(t, &f, round(100, map[uint64]float64{1: 0, 2: 0, 3: 0}), "")
	want(t, &f, round(200, map[uint64]float64{1: 99, 2: 99, 3: 99}), "100:2 200:2")
	f.Set(&attunev1.SampleInterest{Process: 2, AfterNanos: 250e6})
	want(t, &f, round(300, map[uint64]float64{1: 99, 2: 99, 3: 99}), "")
	want(t, &f, round(400, map[uint64]float64{1: 99, 2: 99, 3: 99}), "300:1 400:1")
	want(t, &f, round(500, map[uint64]float64{1: 99, 2: 99, 3: 99}), "500:1")
	want(t, &f, round(600, map[uint64]float64{1: 99, 2: 99, 3: 99}), "500:2 600:12")
}

func TestPassNothing(t *testing.T) {
	var f Filter
	f.Set(&attunev1.SampleInterest{Process: 1})
	want(t, &f, round(0, map[uint64]float64{1: 0}), "")
	f.Forget(1)
	want(t, &f, round(1, map[uint64]float64{1: 0}), "1:1")
}

// Processes whose last samples are of different rounds.
func TestEarlierRoundsComeInOrder(t *testing.T) {
	var f Filter
	for p := range uint64(4) {
		f.Set(&attunev1.SampleInterest{Process: p + 1, Levels: []*attunev1.Level{level(faults, 1)}})
	}
	f.Pass(round(0, map[uint64]float64{2: 0}))
	f.Pass(round(100, map[uint64]float64{1: 0, 4: 0}))
	f.Pass(round(200, map[uint64]float64{3: 0}))
	want(t, &f, round(300, map[uint64]float64{1: 9, 2: 9, 3: 9, 4: 9}), "0:2 100:14 200:3 300:1234")
}

func TestRates(t *testing.T) {
	for name, tt := range map[string]struct {
		level   *attunev1.Level
		reached bool
	}{
		"rate reached":     {level(faults, 10), true},
		"rate not reached": {level(faults, 11), false},
		"unknown signal":   {level(99, 0), false},
		"part reached":     {part(faults, 0.5, written), true},
		"part not reached": {part(faults, 0.6, written), false},
		"part of unknown":  {part(faults, 0.6, series.RunTime), true},
		"of what falls":    {part(faults, 1e9, series.ResidentBytes), true},
		"part of a gauge":  {part(threads, 2, series.CPUsAllowed), true},
		"an unknown part":  {part(series.PythonGCVisits, 1e9, faults), true},
		"none of unknown":  {part(series.MajorFaults, 0.1, series.RunTime), false},
	} {
		var f Filter
		f.Set(&attunev1.SampleInterest{Process: 1, Levels: []*attunev1.Level{level(faults, 1e9), tt.level}})
		f.Pass(with(round(0, map[uint64]float64{1: 0}), 0, 1<<20))
		reached := len(f.Pass(with(round(1000, map[uint64]float64{1: 10}), 20, 1<<19))) > 0
		if reached != tt.reached {
			t.Errorf("%s: reached %v", name, reached)
		}
	}
}

func TestGaugesNeedNoRoundBefore(t *testing.T) {
	var f Filter
	f.Set(&attunev1.SampleInterest{Process: 1, Levels: []*attunev1.Level{level(threads, 5)}})
	want(t, &f, round(0, map[uint64]float64{1: 0}), "")
	f.Set(&attunev1.SampleInterest{Process: 1, Levels: []*attunev1.Level{level(threads, 4)}})
	want(t, &f, round(1, map[uint64]float64{1: 0}), "0:1 1:1")
}
