// SPDX-License-Identifier: Apache-2.0

package samplefilter

import (
	"testing"

	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	threadKind = uint32(series.TableThreads)
	socketKind = uint32(series.TableSockets)
	pipeKind   = uint32(series.TablePipes)
)

// detailedRound is a round in which threads and sockets of processes were read.
func detailedRound(ms int, processes ...uint64) *attunev1.SampleBatch {
	b := round(ms, map[uint64]float64{1: 0, 2: 0, 3: 0})
	for _, p := range processes {
		details := series.Details{Threads: &series.Rows[series.Thread]{Total: 1}, Sockets: &series.Rows[series.Socket]{Total: 2}}
		b.Samples[p-1].Tables = append(b.Samples[p-1].Tables, details.Tables()...)
	}
	return b
}

func asks(f *Filter, process uint64, kinds ...uint32) bool {
	return f.SetDetails(&attunev1.TableWant{Process: process, Tables: kinds})
}

func TestDetailsOnlyWhereAskedFor(t *testing.T) {
	tests := []struct {
		name             string
		asked            []uint32
		threads, sockets bool
	}{
		{"nothing", nil, false, false},
		{"all", []uint32{threadKind, socketKind}, true, true},
		{"more than there are", []uint32{threadKind, socketKind, pipeKind}, true, true},
		{"some", []uint32{socketKind}, false, true},
		{"others", []uint32{pipeKind}, false, false},
		{"unknown", []uint32{0, 5, 31, 99}, false, false},
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
			d := series.DetailsFrom(out[0].GetSamples()[0].GetTables())
			if (d.Threads != nil) != tt.threads || (d.Sockets != nil) != tt.sockets {
				t.Errorf("details %v", d)
			}
			if tables := out[0].GetSamples()[1].GetTables(); len(tables) != 1 || isDetail(tables[0]) {
				t.Errorf("of another process %v, want its signals", tables)
			}
			if n := len(in.GetSamples()[0].GetTables()); n != 3 {
				t.Errorf("what others get was changed: %d tables", n)
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
	if left := append(f.Details(1), f.Details(2)...); len(left) > 0 {
		t.Errorf("details are still wanted: %v", left)
	}
}

func TestNoSampleComesTwice(t *testing.T) {
	var f Filter
	f.Set(&attunev1.SampleInterest{Process: 1, Levels: []*attunev1.Level{level(faults, 100)}})
	asks(&f, 1, threadKind)
	want(t, &f, round(100, map[uint64]float64{1: 0}), "100:1")
	want(t, &f, round(200, map[uint64]float64{1: 50}), "200:1")
	f.Forget(1)
	if len(f.Details(1)) > 0 {
		t.Error("a forgotten process has details")
	}
}
