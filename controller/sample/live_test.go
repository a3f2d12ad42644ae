// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
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
		signal attunev1.Signal
		least  float64
	}{
		{attunev1.Signal_SIGNAL_RUN_TIME, 100e6}, // it burns 100 ms
		{attunev1.Signal_SIGNAL_MINOR_FAULTS, 1000},
		// Of 20 naps: one whose time is over before the thread gets to sleep,
		// because another took its CPU, counts as involuntary.
		{attunev1.Signal_SIGNAL_VOLUNTARY_SWITCHES, 5},
		{attunev1.Signal_SIGNAL_RESIDENT_BYTES, 1000 * 4096},
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
		return s[attunev1.Signal_SIGNAL_CPU_USER] + s[attunev1.Signal_SIGNAL_CPU_SYSTEM]
	}
	if got := both(after) - both(before); got <= burned-cut {
		t.Errorf("CPU time rose by %v ns, want more than %v", got, burned-cut)
	}
	cpus, err := procid.CPUsAllowed(p.pid())
	if err != nil || after[attunev1.Signal_SIGNAL_CPUS_ALLOWED] != float64(cpus) || after[attunev1.Signal_SIGNAL_THREADS] != 1 {
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
		got := mustSample(t, s, p.pid())
		if want, _ := strconv.ParseFloat(threads, 64); got[attunev1.Signal_SIGNAL_THREADS] != want {
			t.Errorf("%v threads, want %s", got[attunev1.Signal_SIGNAL_THREADS], threads)
		}
		for _, counter := range []attunev1.Signal{
			attunev1.Signal_SIGNAL_RUN_TIME, attunev1.Signal_SIGNAL_RUNQUEUE_WAIT,
			attunev1.Signal_SIGNAL_VOLUNTARY_SWITCHES, attunev1.Signal_SIGNAL_INVOLUNTARY_SWITCHES,
		} {
			if got[counter] < last[counter] {
				t.Errorf("%v fell from %v to %v", counter, last[counter], got[counter])
			}
		}
		if rise := got[attunev1.Signal_SIGNAL_RUN_TIME] - last[attunev1.Signal_SIGNAL_RUN_TIME]; rise < 100e6 {
			t.Errorf("run time with %s threads rose by %v ns, want 1e8", threads, rise)
		}
		last = got
	}
}

func TestProcessThatEnds(t *testing.T) {
	p := mustStart(t)
	before := openFiles(t)
	s := New(Options{})
	defer s.Close()
	mustSample(t, s, p.pid())
	s.Forget(p.pid()) // lives on: an exec, its counters are kept
	if len(s.processes) != 1 {
		t.Error("a living process was forgotten")
	}
	p.Kill()
	if _, err := s.Sample(p.pid()); !errors.Is(err, procid.ErrGone) {
		t.Errorf("sample after the end: %v", err)
	}
	if len(s.processes) != 0 {
		t.Error("an ended process is kept")
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
	s.Forget(p.pid())
}

func TestDescriptorsAreBounded(t *testing.T) {
	p := mustStart(t)
	p.tell(t, "threads 40")
	before := openFiles(t)
	s := New(Options{MaxFiles: 10})
	first := mustSample(t, s, p.pid())
	if got := openFiles(t) - before; got != 10 {
		t.Errorf("%d descriptors are kept, want 10", got)
	}
	if again := mustSample(t, s, p.pid()); again[attunev1.Signal_SIGNAL_THREADS] != first[attunev1.Signal_SIGNAL_THREADS] {
		t.Errorf("threads %v, then %v", first, again)
	}
	s.Close()
	if got := openFiles(t); got != before {
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
				if _, err := s.Sample(p.pid()); err != nil {
					t.Error(err)
				}
				s.Forget(p.pid())
			}
		})
	}
	group.Wait()
	s.Close()
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// ownCPU is the CPU time of this process, which a busy machine does not change
// as it does the time on the clock.
func ownCPU(b *testing.B) float64 {
	b.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return float64(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkSample(b *testing.B) {
	for _, threads := range []string{"1", "8", "64", "256", "2000"} {
		b.Run("threads="+threads, func(b *testing.B) {
			p := mustStart(b)
			p.tell(b, "threads "+threads)
			s := New(Options{})
			defer s.Close()
			mustSample(b, s, p.pid())
			before := ownCPU(b)
			for b.Loop() {
				if _, err := s.Sample(p.pid()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((ownCPU(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
