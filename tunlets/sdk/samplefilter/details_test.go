// SPDX-License-Identifier: Apache-2.0

package samplefilter

import (
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	threadKind = attunev1.DetailKind_DETAIL_KIND_THREADS
	socketKind = attunev1.DetailKind_DETAIL_KIND_SOCKETS
	pipeKind   = attunev1.DetailKind_DETAIL_KIND_PIPES
)

// detailedRound is a round in which threads and sockets of processes were read.
func detailedRound(ms int, processes ...uint64) *attunev1.SampleBatch {
	b := round(ms, map[uint64]float64{1: 0, 2: 0, 3: 0})
	for _, p := range processes {
		b.Samples[p-1].Details = &attunev1.Details{Threads: &attunev1.ThreadDetails{Total: 1}, Sockets: &attunev1.SocketDetails{Total: 2}}
	}
	return b
}

func asks(f *Filter, process uint64, kinds ...attunev1.DetailKind) bool {
	return f.SetDetails(&attunev1.DetailInterest{Process: process, Kinds: kinds})
}

func TestDetailsOnlyWhereAskedFor(t *testing.T) {
	tests := []struct {
		name             string
		asked            []attunev1.DetailKind
		threads, sockets bool
	}{
		{"nothing", nil, false, false},
		{"all", []attunev1.DetailKind{threadKind, socketKind}, true, true},
		{"more than there are", []attunev1.DetailKind{threadKind, socketKind, pipeKind}, true, true},
		{"some", []attunev1.DetailKind{socketKind}, false, true},
		{"others", []attunev1.DetailKind{pipeKind}, false, false},
		{"unknown", []attunev1.DetailKind{0, -1, 31, 99}, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var f Filter
			asks(&f, 1, tt.asked...)
			in := detailedRound(0, 1, 2)
			out := f.Pass(in)
			if text(out) != "0:123" {
				t.Fatalf("%s passes", text(out))
			}
			d := out[0].GetSamples()[0].GetDetails()
			if (d.GetThreads() != nil) != tt.threads || (d.GetSockets() != nil) != tt.sockets || d != nil && !tt.threads && !tt.sockets {
				t.Errorf("details %v", d)
			}
			if out[0].GetSamples()[1].GetDetails() != nil {
				t.Error("details of another process")
			}
			if len(out[0].GetSamples()[1].GetTables()) != 1 || in.GetSamples()[0].GetDetails().GetThreads() == nil {
				t.Error("readings are gone, or what others get was changed")
			}
		})
	}
}

// As long as details are wanted all samples come, whatever level was waited for;
// afterwards the wait goes on.
func TestDetailsBringSamples(t *testing.T) {
	var f Filter
	f.Set(&attunev1.SampleInterest{Process: 1, Levels: []*attunev1.Level{level(faults, 100)}})
	f.Set(&attunev1.SampleInterest{Process: 2})
	want(t, &f, round(0, map[uint64]float64{1: 0, 2: 0}), "")
	if !asks(&f, 1, threadKind) || asks(&f, 1, threadKind) || !asks(&f, 2, threadKind) {
		t.Error("news are told from what is known")
	}
	want(t, &f, round(100, map[uint64]float64{1: 0, 2: 0}), "100:12")
	asks(&f, 2)
	want(t, &f, round(200, map[uint64]float64{1: 0, 2: 0}), "200:1")
	asks(&f, 1)
	want(t, &f, round(300, map[uint64]float64{1: 0, 2: 0}), "")
	want(t, &f, round(400, map[uint64]float64{1: 50, 2: 0}), "300:1 400:1")
	for process := range f.Details() {
		t.Errorf("details of process %d are still wanted", process)
	}
}

func TestNoSampleComesTwice(t *testing.T) {
	var f Filter
	f.Set(&attunev1.SampleInterest{Process: 1, Levels: []*attunev1.Level{level(faults, 100)}})
	asks(&f, 1, threadKind)
	want(t, &f, round(100, map[uint64]float64{1: 0}), "100:1")
	want(t, &f, round(200, map[uint64]float64{1: 50}), "200:1")
	f.Forget(1)
	for range f.Details() {
		t.Error("a forgotten process has details")
	}
}
