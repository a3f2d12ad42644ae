// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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

// The pressure is that of the process' cgroup, or the node's.
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
}

// TestPressureOfMoved: counters go on where they were when the process is put into another
// group, also from 0, and by way of one whose pressure becomes known later.
func TestPressureOfMoved(t *testing.T) {
	proc := newFakeProc(t)
	mounted := t.TempDir()
	proc.write(fmt.Sprintf("26 1 0:23 / %s rw - cgroup2 cgroup2 rw\n", mounted), "..", "self", "mountinfo")
	node, job, late := filepath.Join(proc.root, "pressure"), filepath.Join(mounted, "job"), filepath.Join(mounted, "late")
	groups(t, node, "", 100)
	groups(t, job, ".pressure", 0)
	s := New(Options{root: proc.root})
	p := newPressures(proc.root).of(filepath.Join(proc.root, strconv.Itoa(fakePID))).(*pressure)
	of := &process{buffer: make([]byte, maxFileBytes)}
	for i, step := range []struct {
		membership string
		change     func()
		want       []uint64 // of the CPU, in microseconds
	}{
		{"0::/job\n", nil, []uint64{0}},
		{"0::/\n", nil, []uint64{0}},
		{"0::/\n", func() { groups(t, node, "", 150) }, []uint64{50}},
		{"0::/late\n", nil, nil},
		{"0::/late\n", func() { groups(t, late, ".pressure", 7) }, []uint64{50}},
		{"0::/job\n", nil, []uint64{50}},
		{"0::/job\n", func() { groups(t, job, ".pressure", 4) }, []uint64{54}},
	} {
		if step.change != nil {
			step.change()
			p.group.at, p.group.skip = time.Time{}, [len(pressureFiles)]int{}
		}
		proc.write(step.membership, "cgroup")
		p.rounds = 0
		readings, err := p.read(s, of, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, r := range readings {
			if r.ID == series.CPUPressure {
				got = append(got, r.Value/1000)
			}
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("step %d: pressure %v, want %v", i, got, step.want)
		}
	}
	p.close(s)
	if err := s.Close(); err != nil || s.files.left.Load() != defaultMaxFiles {
		t.Errorf("%d descriptors are free after the end, want %d: %v", s.files.left.Load(), defaultMaxFiles, err)
	}
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
