// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/proto/attune/series"
)

func TestParsePressure(t *testing.T) {
	for _, tt := range []struct {
		name, data string
		want       [2]uint64
		ok         bool
	}{
		{"both", "some avg10=1.50 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n", [2]uint64{12000, 3000}, true},
		{"some", "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n", [2]uint64{12000, 0}, true},
		{"no total", "some avg10=0.00\n", [2]uint64{}, false},
		{"no number", "some total=x\n", [2]uint64{}, false},
		{"full only", "full total=1\n", [2]uint64{}, false},
		{"empty", "", [2]uint64{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parsePressure([]byte(tt.data))
			if (err == nil) != tt.ok || tt.ok && got != tt.want || err != nil && !errors.Is(err, errMalformed) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func FuzzParsePressure(f *testing.F) {
	f.Add([]byte("some avg10=0.00 avg60=0.00 avg300=0.00 total=12\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parsePressure(data); err != nil && !errors.Is(err, errMalformed) {
			t.Error(err)
		}
	})
}

// pressed are the signals of pressure among others.
func pressed(of signals) signals {
	out := maps.Clone(of)
	maps.DeleteFunc(out, func(id series.ID, _ float64) bool { return id < series.CPUPressure || id > series.IOPressureFull })
	return out
}

// groups writes the pressure of control groups below a directory.
func groups(t *testing.T, dir, suffix string, some int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"cpu", "memory", "io"} {
		text := fmt.Sprintf("some avg10=0.00 avg60=0.00 avg300=0.00 total=%d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=%d\n", some, some/2)
		files.Write(t, filepath.Join(dir, kind+suffix), text, 0o644)
	}
}

// The pressure is that of the process' cgroup, or the node's; counters do not fall
// where the process is put into another group.
func TestPressure(t *testing.T) {
	proc := newFakeProc(t)
	proc.set(map[int]fakeThread{fakePID: {"S", 1, 1, 1, 1, "1", 0}})
	mounted := t.TempDir()
	proc.write(fmt.Sprintf("26 1 0:23 / %s rw - cgroup2 cgroup2 rw\n", mounted), "..", "self", "mountinfo")
	groups(t, filepath.Join(proc.root, "pressure"), "", 100)
	groups(t, filepath.Join(mounted, "job"), ".pressure", 10)
	for _, tt := range []struct {
		name, membership string
		cpu              float64
	}{
		{"its own", "0::/job\n", 10e3}, {"the node's", "0::/\n", 100e3}, {"version 1 only", "3:cpu:/job\n", 100e3},
		{"one that has none", "0::/other\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New(Options{root: proc.root})
			defer s.Close()
			proc.write(tt.membership, "cgroup")
			want := signals{
				series.CPUPressure: tt.cpu, series.MemoryPressure: tt.cpu, series.MemoryPressureFull: tt.cpu / 2,
				series.IOPressure: tt.cpu, series.IOPressureFull: tt.cpu / 2,
			}
			if tt.cpu == 0 {
				want = signals{}
			}
			if got := pressed(mustSample(t, s, fakePID)); !maps.Equal(got, want) {
				t.Errorf("pressure %v, want %v", got, want)
			}
		})
	}
	t.Run("moved", func(t *testing.T) {
		s := New(Options{root: proc.root})
		proc.write("0::/\n", "cgroup")
		first := mustSample(t, s, fakePID)[series.CPUPressure]
		proc.write("0::/job\n", "cgroup")
		for range cgroupRounds + 1 {
			if got := mustSample(t, s, fakePID)[series.CPUPressure]; got != first {
				t.Fatalf("pressure %v, want %v as before", got, first)
			}
		}
		if err := s.Close(); err != nil || s.files.left.Load() != defaultMaxFiles {
			t.Errorf("%d descriptors are free after the end, want %d: %v", s.files.left.Load(), defaultMaxFiles, err)
		}
	})
}

// BenchmarkPressure is what a round costs for each control group.
func BenchmarkPressure(b *testing.B) {
	s := New(Options{})
	defer s.Close()
	g := newPressureGroup("/proc/pressure", true)
	defer g.close(s)
	buffer := make([]byte, maxFileBytes)
	start := clock.Process()
	for b.Loop() {
		g.at = time.Time{}
		if err := g.refresh(s, buffer); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(clock.Process()-start)/float64(b.N), "cpu-ns/op")
}
