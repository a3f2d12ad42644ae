// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type signals map[attunev1.Signal]float64

func mustSample(t testing.TB, s *Sampler, pid int) signals {
	t.Helper()
	readings, err := s.Sample(pid)
	if err != nil {
		t.Fatal(err)
	}
	values := make(signals)
	for _, r := range readings {
		if _, twice := values[r.GetSignal()]; twice {
			t.Errorf("%v was told twice", r.GetSignal())
		}
		values[r.GetSignal()] = r.GetValue()
	}
	return values
}

// fakeThread is one thread of a made-up /proc.
type fakeThread struct {
	state                              string
	run, wait, voluntary, nonvoluntary int
	cpus                               string
}

const fakePID = 100

// fakeProc writes a /proc with one process.
type fakeProc struct {
	t    *testing.T
	root string
}

func newFakeProc(t *testing.T) fakeProc { return fakeProc{t, t.TempDir()} }

func (f fakeProc) write(content string, path ...string) {
	f.t.Helper()
	name := filepath.Join(append([]string{f.root, strconv.Itoa(fakePID)}, path...)...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(content), 0o644)); err != nil {
		f.t.Fatal(err)
	}
}

// set makes these the threads of the process.
func (f fakeProc) set(threads map[int]fakeThread) {
	f.t.Helper()
	if err := os.RemoveAll(filepath.Join(f.root, strconv.Itoa(fakePID), "task")); err != nil {
		f.t.Fatal(err)
	}
	stat := func(tid int, state string) string {
		return fmt.Sprintf("%d (solver) %s 1 1 1 0 -1 0 70 0 3 0 250 50 0 0 20 0 %d 0 5000 4096 10 0 1 2 3\n", tid, state, len(threads))
	}
	f.write(stat(fakePID, threads[fakePID].state), "stat")
	for tid, thread := range threads {
		task := strconv.Itoa(tid)
		f.write(stat(tid, thread.state), "task", task, "stat")
		f.write(fmt.Sprintf("%d %d 1\n", thread.run, thread.wait), "task", task, "schedstat")
		f.write(fmt.Sprintf("Cpus_allowed:\t%s\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n",
			thread.cpus, thread.voluntary, thread.nonvoluntary), "task", task, "status")
	}
}

func TestSignalsOfFixture(t *testing.T) {
	proc := newFakeProc(t)
	proc.set(map[int]fakeThread{
		fakePID: {"R", 1000, 10, 5, 6, "1"},
		101:     {"S", 2000, 20, 7, 8, "2"},
		102:     {"R", 4000, 40, 9, 1, "2"},
	})
	s := New(Options{Root: proc.root})
	defer s.Close()
	want := signals{
		attunev1.Signal_SIGNAL_CPU_USER:             2.5e9,
		attunev1.Signal_SIGNAL_CPU_SYSTEM:           0.5e9,
		attunev1.Signal_SIGNAL_RUN_TIME:             7000,
		attunev1.Signal_SIGNAL_RUNQUEUE_WAIT:        70,
		attunev1.Signal_SIGNAL_MINOR_FAULTS:         70,
		attunev1.Signal_SIGNAL_MAJOR_FAULTS:         3,
		attunev1.Signal_SIGNAL_RESIDENT_BYTES:       float64(10 * os.Getpagesize()),
		attunev1.Signal_SIGNAL_VOLUNTARY_SWITCHES:   21,
		attunev1.Signal_SIGNAL_INVOLUNTARY_SWITCHES: 15,
		attunev1.Signal_SIGNAL_THREADS:              3,
		attunev1.Signal_SIGNAL_RUNNABLE_THREADS:     2,
		attunev1.Signal_SIGNAL_CPUS_ALLOWED:         2,
	}
	if diff := cmp.Diff(want, mustSample(t, s, fakePID)); diff != "" {
		t.Errorf("signals (-want +got):\n%s", diff)
	}
}

// TestSumsNeverFall lets threads end, be born, and take over a number.
func TestSumsNeverFall(t *testing.T) {
	first := fakeThread{"S", 1000, 10, 5, 6, "3"}
	second := fakeThread{"R", 500, 50, 2, 3, "3"}
	steps := []struct {
		name     string
		threads  map[int]fakeThread
		run      float64
		wait     float64
		switches float64
	}{
		{"two threads", map[int]fakeThread{fakePID: first, 101: second}, 1500, 60, 7},
		{"one ended", map[int]fakeThread{fakePID: first}, 1500, 60, 7},
		{"another one came", map[int]fakeThread{fakePID: first, 102: second}, 2000, 110, 9},
		{"its number was reused", map[int]fakeThread{fakePID: first, 102: {"R", 100, 1, 1, 0, "3"}}, 2100, 111, 10},
		{"all but the first ended", map[int]fakeThread{fakePID: first}, 2100, 111, 10},
	}
	proc := newFakeProc(t)
	s := New(Options{Root: proc.root, MaxFiles: -1})
	defer s.Close()
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			proc.set(step.threads)
			got := mustSample(t, s, fakePID)
			if got[attunev1.Signal_SIGNAL_RUN_TIME] != step.run || got[attunev1.Signal_SIGNAL_RUNQUEUE_WAIT] != step.wait ||
				got[attunev1.Signal_SIGNAL_VOLUNTARY_SWITCHES] != step.switches {
				t.Errorf("signals %v, want %+v", got, step)
			}
		})
	}
}

func TestManyThreadsAreReadInTurn(t *testing.T) {
	const threads, perRound = 100, 30
	proc := newFakeProc(t)
	all := make(map[int]fakeThread)
	for tid := fakePID; tid < fakePID+threads; tid++ {
		all[tid] = fakeThread{"S", 10, 1, 1, 1, "1"}
	}
	proc.set(all)
	s := New(Options{Root: proc.root, ThreadsPerRound: perRound})
	defer s.Close()
	for round, want := range []float64{300, 600, 900, 1000, 1000} {
		if got := mustSample(t, s, fakePID)[attunev1.Signal_SIGNAL_RUN_TIME]; got != want {
			t.Errorf("round %d: run time %v, want %v", round, got, want)
		}
	}
}

func TestSwitchesOfKnownThreadsInTurn(t *testing.T) {
	proc := newFakeProc(t)
	threads := make(map[int]fakeThread)
	set := func(switches int) {
		for tid := fakePID; tid < fakePID+9; tid++ {
			threads[tid] = fakeThread{"S", 10, 1, switches, 0, "1"}
		}
		proc.set(threads)
	}
	s := New(Options{Root: proc.root, StatusPerRound: 4, MaxFiles: -1})
	defer s.Close()
	set(1)
	if got := mustSample(t, s, fakePID)[attunev1.Signal_SIGNAL_VOLUNTARY_SWITCHES]; got != 9 {
		t.Errorf("new threads: %v switches, want 9", got)
	}
	set(2)
	first := mustSample(t, s, fakePID)[attunev1.Signal_SIGNAL_VOLUNTARY_SWITCHES]
	if first <= 9 || first >= 18 {
		t.Errorf("after one round %v switches, want some more than 9", first)
	}
	for range 3 {
		mustSample(t, s, fakePID)
	}
	if got := mustSample(t, s, fakePID)[attunev1.Signal_SIGNAL_VOLUNTARY_SWITCHES]; got != 18 {
		t.Errorf("after all rounds %v switches, want 18", got)
	}
}

func TestMalformedFiles(t *testing.T) {
	for _, file := range []string{"stat", "task/100/schedstat", "task/100/status"} {
		t.Run(file, func(t *testing.T) {
			proc := newFakeProc(t)
			proc.set(map[int]fakeThread{fakePID: {"S", 1, 1, 1, 1, "1"}})
			proc.write("nonsense", file)
			s := New(Options{Root: proc.root})
			defer s.Close()
			if _, err := s.Sample(fakePID); err == nil || errors.Is(err, procid.ErrGone) {
				t.Errorf("error %v", err)
			}
		})
	}
}
