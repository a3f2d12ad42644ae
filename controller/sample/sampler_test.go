// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/attune-hpc/attune/controller/source"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type signals map[series.ID]float64

// numbered is the process of a number, as a Sampler is asked for it.
func numbered(pid int) source.Process { return source.Process{Identity: procid.Identity{PID: pid}} }

func mustSample(t testing.TB, s *Sampler, pid int) signals {
	t.Helper()
	table, _, err := s.sample(numbered(pid), 0)
	if err != nil {
		t.Fatal(err)
	}
	return values(t, table)
}

// values are the signals in a table.
func values(t testing.TB, table *attunev1.Table) signals {
	t.Helper()
	values := make(signals)
	for id, value := range series.SignalsOf(&attunev1.Sample{Tables: []*attunev1.Table{table}}) {
		if _, twice := values[id]; twice {
			t.Errorf("%v was told twice", id)
		}
		values[id] = float64(value)
	}
	return values
}

// fakeThread is one thread of a made-up /proc.
type fakeThread struct {
	state                              string
	run, wait, voluntary, nonvoluntary int
	cpus                               string
	later                              int // ticks that it started later than its number says
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
	f.write(threadStat(fakePID, threads[fakePID], len(threads)), "stat")
	for tid, thread := range threads {
		task := strconv.Itoa(tid)
		f.write(threadStat(tid, thread, len(threads)), "task", task, "stat")
		f.write(fmt.Sprintf("%d %d 1\n", thread.run, thread.wait), "task", task, "schedstat")
		f.write(fmt.Sprintf("Cpus_allowed:\t%s\nvoluntary_ctxt_switches:\t%d\nnonvoluntary_ctxt_switches:\t%d\n",
			thread.cpus, thread.voluntary, thread.nonvoluntary), "task", task, "status")
	}
}

// threadStat is the stat file of a thread that ran on CPU 1 last and was started
// by the tick of its own number.
func threadStat(tid int, thread fakeThread, threads int) string {
	return fmt.Sprintf("%d (solver) %s 1 1 1 0 -1 0 70 0 3 0 250 50 0 0 20 0 %d 0 %d 4096 10 0 1 2 3"+
		" 0 0 0 0 0 0 0 0 0 17 1 0\n", tid, thread.state, threads, tid+thread.later)
}

func TestSignalsOfFixture(t *testing.T) {
	proc := newFakeProc(t)
	proc.set(map[int]fakeThread{
		fakePID: {"R", 1000, 10, 5, 6, "1", 0},
		101:     {"S", 2000, 20, 7, 8, "2", 0},
		102:     {"R", 4000, 40, 9, 1, "2", 0},
	})
	proc.write("rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\n", "io")
	s := New(Options{root: proc.root, cpus: 2})
	defer s.Close()
	want := signals{
		series.CPUUser:             2.5e9,
		series.CPUSystem:           0.5e9,
		series.RunTime:             7000,
		series.RunqueueWait:        70,
		series.MinorFaults:         70,
		series.MajorFaults:         3,
		series.ResidentBytes:       float64(10 * os.Getpagesize()),
		series.VoluntarySwitches:   21,
		series.InvoluntarySwitches: 15,
		series.Threads:             3,
		series.RunnableThreads:     2,
		series.CPUsAllowed:         2,
		series.BoundThreads:        3,
		series.ReadCalls:           3,
		series.WriteCalls:          4,
		series.ReadBytes:           10,
		series.WrittenBytes:        20,
	}
	if diff := cmp.Diff(want, mustSample(t, s, fakePID)); diff != "" {
		t.Errorf("signals (-want +got):\n%s", diff)
	}
}

// TestSumsNeverFall lets threads end, be born, and take over a number.
func TestSumsNeverFall(t *testing.T) {
	first := fakeThread{"S", 1000, 10, 5, 6, "3", 0}
	second := fakeThread{"R", 500, 50, 2, 3, "3", 0}
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
		{"its number was reused", map[int]fakeThread{fakePID: first, 102: {"R", 100, 1, 1, 0, "3", 0}}, 2100, 111, 10},
		{"all but the first ended", map[int]fakeThread{fakePID: first}, 2100, 111, 10},
	}
	proc := newFakeProc(t)
	s := New(Options{root: proc.root, maxFiles: -1})
	defer s.Close()
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			proc.set(step.threads)
			got := mustSample(t, s, fakePID)
			if got[series.RunTime] != step.run || got[series.RunqueueWait] != step.wait ||
				got[series.VoluntarySwitches] != step.switches {
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
		all[tid] = fakeThread{"S", 10, 1, 1, 1, "1", 0}
	}
	proc.set(all)
	s := New(Options{root: proc.root, threadsPerRound: perRound})
	defer s.Close()
	for round, want := range []float64{300, 600, 900, 1000, 1000} {
		if got := mustSample(t, s, fakePID)[series.RunTime]; got != want {
			t.Errorf("round %d: run time %v, want %v", round, got, want)
		}
	}
}

func TestSwitchesOfKnownThreadsInTurn(t *testing.T) {
	proc := newFakeProc(t)
	threads := make(map[int]fakeThread)
	set := func(switches int) {
		for tid := fakePID; tid < fakePID+9; tid++ {
			threads[tid] = fakeThread{"S", 10, 1, switches, 0, "1", 0}
		}
		proc.set(threads)
	}
	s := New(Options{root: proc.root, statusPerRound: 4, maxFiles: -1})
	defer s.Close()
	set(1)
	if got := mustSample(t, s, fakePID)[series.VoluntarySwitches]; got != 9 {
		t.Errorf("new threads: %v switches, want 9", got)
	}
	set(2)
	first := mustSample(t, s, fakePID)[series.VoluntarySwitches]
	if first <= 9 || first >= 18 {
		t.Errorf("after one round %v switches, want some more than 9", first)
	}
	for range 3 {
		mustSample(t, s, fakePID)
	}
	if got := mustSample(t, s, fakePID)[series.VoluntarySwitches]; got != 18 {
		t.Errorf("after all rounds %v switches, want 18", got)
	}
}

func TestMalformedFiles(t *testing.T) {
	for _, file := range []string{"stat", "task/100/schedstat", "task/100/status", "io"} {
		t.Run(file, func(t *testing.T) {
			proc := newFakeProc(t)
			proc.set(map[int]fakeThread{fakePID: {"S", 1, 1, 1, 1, "1", 0}})
			proc.write("nonsense", file)
			s := New(Options{root: proc.root})
			defer s.Close()
			if _, _, err := s.sample(numbered(fakePID), 0); err == nil || errors.Is(err, procid.ErrGone) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Details are of the threads that are next in turn, as many as are asked for,
// and each of them is of this round.
func TestThreadDetailsInTurn(t *testing.T) {
	proc := newFakeProc(t)
	all := make(map[int]fakeThread)
	for tid := fakePID; tid < fakePID+10; tid++ {
		all[tid] = fakeThread{"S", 10 * tid, tid, 1, 2, "3", 0}
	}
	proc.set(all)
	s := New(Options{root: proc.root})
	defer s.Close()
	seen := map[int]int{}
	for round, want := range []int{4, 4, 2, 4, 4, 2} {
		_, details, err := s.sample(numbered(fakePID), 4)
		if err != nil {
			t.Fatal(err)
		}
		if details.Total != 10 || len(details.Items) != want {
			t.Errorf("round %d: %d of %d threads, want %d of 10", round, len(details.Items), details.Total, want)
		}
		for _, thread := range details.Items {
			seen[thread.TID]++
			checkThread(t, thread)
		}
	}
	for tid, times := range seen {
		if times != 2 {
			t.Errorf("thread %d was read %d times in two turns", tid, times)
		}
	}
	if _, details, err := s.sample(numbered(fakePID), 0); err != nil || details != nil {
		t.Errorf("without being asked for: %v, %v", details, err)
	}
}

func checkThread(t *testing.T, got series.Thread) {
	t.Helper()
	tid := got.TID
	want := series.Thread{
		TID: tid, StartTicks: uint64(tid), Name: "solver", State: "S", Run: time.Duration(10 * tid), Wait: time.Duration(tid),
		VoluntarySwitches: 1, InvoluntarySwitches: 2, LastCPU: 1, CPUsAllowed: "0-1",
	}
	if want != got {
		t.Errorf("thread %v, want %v", got, want)
	}
}

// A number that another thread has by now begins anew, and the sum goes on.
func TestThreadNumberUsedAgain(t *testing.T) {
	proc := newFakeProc(t)
	s := New(Options{root: proc.root, maxFiles: -1})
	defer s.Close()
	for _, step := range []struct {
		thread fakeThread
		run    float64
	}{
		{fakeThread{"S", 100, 1, 5, 1, "1", 0}, 100},
		{fakeThread{"S", 300, 1, 2, 1, "1", 7}, 400},
	} {
		proc.set(map[int]fakeThread{fakePID: step.thread})
		table, details, err := s.sample(numbered(fakePID), 4)
		if err != nil {
			t.Fatal(err)
		}
		if got := details.Items[0]; got.VoluntarySwitches != uint64(step.thread.voluntary) || got.Run != time.Duration(step.thread.run) {
			t.Errorf("thread %v, want %+v", got, step.thread)
		}
		if got := values(t, table)[series.RunTime]; got != step.run {
			t.Errorf("run time %v, want %v", got, step.run)
		}
	}
}

// A process that this user may not look into has its other signals.
func TestNoTransfers(t *testing.T) {
	proc := newFakeProc(t)
	proc.set(map[int]fakeThread{fakePID: {"S", 1, 1, 1, 1, "1", 0}})
	s := New(Options{root: proc.root})
	defer s.Close()
	for round := range ioPause + 3 {
		got := mustSample(t, s, fakePID)
		if round == 1 {
			proc.write("rchar: 10\nwchar: 20\nsyscr: 3\nsyscw: 4\n", "io")
		}
		calls, ok := got[series.ReadCalls]
		if want := round > ioPause; ok != want || ok && calls != 3 {
			t.Fatalf("round %d: %v read calls, %v", round, calls, ok)
		}
	}
}
