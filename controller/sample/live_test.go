// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/openfiles"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// target is a running testdata/threads.c.
type target struct{ *targets.Target }

// mustStart starts the program, which makes and ends threads as it is told.
func mustStart(t testing.TB) target {
	t.Helper()
	return target{targets.Start(t, targets.Build(t, "testdata/threads.c"))}
}

func (p target) pid() int { return p.PID }

// tell sends a command ("threads N", "burn", "fault") and waits for its end.
func (p target) tell(t testing.TB, command string) {
	t.Helper()
	p.Ask(t, command)
}

func TestLiveProcess(t *testing.T) {
	p := mustStart(t)
	s := New(Options{})
	defer s.Close()
	p.tell(t, "threads 1")
	before := mustSample(t, s, p.pid())
	p.tell(t, "burn")
	p.tell(t, "fault")
	p.tell(t, "nap")
	after := mustSample(t, s, p.pid())
	gains := []struct {
		signal series.ID
		least  float64
	}{
		{series.RunTime, 100e6}, // it burns 100 ms
		{series.MinorFaults, 1000},
		// Of 20 naps: one whose time is over before the thread gets to sleep,
		// because another took its CPU, counts as involuntary.
		{series.VoluntarySwitches, 5},
		{series.ResidentBytes, 1000 * 4096},
		{series.AnonymousBytes, 1000 * 4096},
		// It answers three times.
		{series.ReadCalls, 3},
		{series.WriteCalls, 3},
		{series.ReadBytes, float64(len("burn\nfault\nnap\n"))},
		{series.WrittenBytes, float64(3 * len("done\n"))},
	}
	for _, gain := range gains {
		if got := after[gain.signal] - before[gain.signal]; got < gain.least {
			t.Errorf("%v rose by %v, want at least %v", gain.signal, got, gain.least)
		}
	}
	// The kernel splits CPU time by where its clock ticks fell, so only the sum
	// can be relied on, and cuts both parts down to whole hundredths of a second.
	const burned, cut = 100e6, 2 * 1e9 / procid.TicksPerSecond
	both := func(s signals) float64 {
		return s[series.CPUUser] + s[series.CPUSystem]
	}
	if got := both(after) - both(before); got <= burned-cut {
		t.Errorf("CPU time rose by %v ns, want more than %v", got, burned-cut)
	}
	cpus, err := procid.CPUsAllowed(p.pid())
	if err != nil || after[series.CPUsAllowed] != float64(cpus) || after[series.Threads] != 1 {
		t.Errorf("signals %v, %d CPUs, %v", after, cpus, err)
	}
}

func TestLiveThreads(t *testing.T) {
	p := mustStart(t)
	s := New(Options{})
	defer s.Close()
	last := make(signals)
	for _, threads := range []string{"1", "5", "40", "3", "1"} {
		p.tell(t, "threads "+threads)
		p.tell(t, "burn") // 100 ms in each thread together
		want, _ := strconv.ParseFloat(threads, 64)
		var got signals
		// Those that were joined are listed for a moment, and of one that runs the last tick is lacking.
		patience.Until(t, threads+" threads, and what they burnt", func() bool {
			got = mustSample(t, s, p.pid())
			return got[series.Threads] == want && got[series.RunTime]-last[series.RunTime] >= 100e6
		})
		for _, counter := range []series.ID{
			series.RunTime, series.RunqueueWait,
			series.VoluntarySwitches, series.InvoluntarySwitches,
		} {
			if got[counter] < last[counter] {
				t.Errorf("%v fell from %v to %v", counter, last[counter], got[counter])
			}
		}
		last = got
	}
}

// Every thread is told of, with its own time and its own CPUs, however many there
// are; those that have ended are not.
func TestLiveThreadDetails(t *testing.T) {
	const threads = 40
	p := mustStart(t)
	s := New(Options{})
	defer s.Close()
	p.tell(t, "threads "+strconv.Itoa(threads))
	p.tell(t, "burn")
	turn := func() map[int]series.Thread {
		all := map[int]series.Thread{}
		for range 4 {
			_, details, err := s.sample(numbered(p.pid()), 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, thread := range details.Items {
				all[thread.TID] = thread
			}
		}
		return all
	}
	var all map[int]series.Thread
	patience.Until(t, "what each thread burnt", func() bool { // of one that runs yet the last tick is lacking
		all = turn()
		for _, thread := range all {
			if thread.Run < 100*time.Millisecond/threads || thread.VoluntarySwitches == 0 {
				return false
			}
		}
		return true
	})
	if len(all) != threads {
		t.Errorf("%d threads in a turn, want %d", len(all), threads)
	}
	for _, thread := range all {
		if thread.Name != "threads" || thread.StartTicks == 0 ||
			thread.CPUsAllowed == "" {
			t.Errorf("thread %v", thread)
		}
	}
	pinned := all[p.pid()]
	var first unix.CPUSet
	first.Set(lowestCPU(t, p.pid()))
	if err := unix.SchedSetaffinity(p.pid(), &first); err != nil {
		t.Fatal(err)
	}
	p.tell(t, "threads 2")
	// Those that are gone are listed until the next turn, and by the kernel for a moment
	// after they were joined.
	patience.Until(t, "two threads", func() bool { all = turn(); return len(all) == 2 })
	if all[pinned.TID].CPUsAllowed != strconv.Itoa(lowestCPU(t, p.pid())) {
		t.Errorf("threads that are left: %v", all)
	}
}

// lowestCPU is the first one that a process may run on.
func lowestCPU(t *testing.T, pid int) int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(pid, &set); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !set.IsSet(cpu) {
		cpu++
	}
	return cpu
}

func TestProcessThatEnds(t *testing.T) {
	p := mustStart(t)
	before := openfiles.Count(t)
	s := New(Options{})
	defer s.Close()
	mustSample(t, s, p.pid())
	s.Forget(p.pid()) // lives on: an exec, its counters are kept
	if len(s.processes) != 1 {
		t.Error("a living process was forgotten")
	}
	p.Kill()
	if _, _, err := s.sample(numbered(p.pid()), 0); !errors.Is(err, procid.ErrGone) {
		t.Errorf("sample after the end: %v", err)
	}
	if len(s.processes) != 0 {
		t.Error("an ended process is kept")
	}
	if after := openfiles.Count(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	s.Forget(p.pid())
}

func TestDescriptorsAreBounded(t *testing.T) {
	p := mustStart(t)
	p.tell(t, "threads 40")
	before := openfiles.Count(t)
	s := New(Options{maxFiles: 10})
	first := mustSample(t, s, p.pid())
	if got := openfiles.Count(t) - before; got != 10 {
		t.Errorf("%d descriptors are kept, want 10", got)
	}
	if again := mustSample(t, s, p.pid()); again[series.Threads] != first[series.Threads] {
		t.Errorf("threads %v, then %v", first, again)
	}
	s.Close()
	if got := openfiles.Count(t); got != before {
		t.Errorf("%d descriptors before, %d after Close", before, got)
	}
}

func TestManyGoroutines(t *testing.T) {
	p := mustStart(t)
	p.tell(t, "threads 5")
	s := New(Options{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				if _, _, err := s.sample(numbered(p.pid()), 0); err != nil {
					t.Error(err)
				}
				s.Forget(p.pid())
			}
		})
	}
	group.Wait()
	s.Close()
}

func BenchmarkSample(b *testing.B)        { benchmarkSample(b, 0) }
func BenchmarkSampleThreads(b *testing.B) { benchmarkSample(b, defaultThreadsPerRound) }

func benchmarkSample(b *testing.B, detailed int) {
	for _, threads := range []string{"1", "8", "64", "256", "2000"} {
		b.Run("threads="+threads, func(b *testing.B) {
			p := mustStart(b)
			p.tell(b, "threads "+threads)
			s := New(Options{})
			defer s.Close()
			mustSample(b, s, p.pid())
			before := clock.Process()
			for b.Loop() {
				if _, _, err := s.sample(numbered(p.pid()), detailed); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(clock.Process()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
