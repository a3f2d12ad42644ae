// SPDX-License-Identifier: Apache-2.0

package ompthreads

import (
	"math"

	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// sleepSeconds is what it costs to let a thread sleep and wake it again, on
	// the CPUs of both, and yieldSeconds what it costs to pass a CPU on to another
	// thread that is ready. Measured on a virtual machine with two CPUs: libgomp
	// with teams of 3 and 8 threads, libomp with 4 and 8, regions of 1 to 500 us.
	sleepSeconds = 12e-6
	yieldSeconds = 2e-6
	// systemFactor bounds the share by the time that the process really spends in
	// the kernel: for each second there, half a second more was lost outside, in
	// cold caches and in turns that were spun before sleeping. Measured there, too.
	systemFactor = 1.5

	// maxShare keeps the gain finite.
	maxShare = 0.95
	// leastGain is the predicted gain from which a change is worth a try.
	leastGain = 1.15
	// leastRun is the CPU time that the process must get: one that rests has no
	// trouble, however many threads it has.
	leastRun = 0.3
	// leastRegions per second: fewer, and the regions are not what switches.
	leastRegions = 5
	// setNoise is the part by which processes may seem to run more than their CPUs
	// let them: their times are not read at the same moment.
	setNoise = 0.1
)

// load is what a process' threads do, per second of real time.
type load struct {
	// run and wait are seconds on a CPU, and seconds ready but without one.
	run, wait float64
	// sleeps are voluntary switches, yields those to a thread that is ready.
	sleeps, yields float64
	// system is the part of the CPU time, 0 to 1, that is spent in the kernel; 1
	// where that is not known.
	system float64
	// threads there are, and the CPUs that they may use.
	threads, cpus float64
}

// loadOf reads a load from a span, and the gauges from the window that the span
// is of; false if signals are missing.
func loadOf(w *sdk.Window, s sdk.Span) (load, bool) {
	run, okRun := s.Rate(sdk.RunTime)
	wait, okWait := s.Rate(sdk.RunqueueWait)
	sleeps, okSleeps := s.Rate(sdk.VoluntarySwitches)
	yields, okYields := s.Rate(sdk.InvoluntarySwitches)
	threads, okThreads := w.Last(sdk.Threads)
	cpus, okCPUs := w.Last(sdk.CPUsAllowed)
	return load{
		run: run * 1e-9, wait: wait * 1e-9, sleeps: sleeps, yields: yields, system: systemOf(s), threads: threads, cpus: cpus,
	}, okRun && okWait && okSleeps && okYields && okThreads && okCPUs && cpus >= 1
}

// systemOf is the part of the CPU time that is spent in the kernel, which is told
// in clock ticks.
func systemOf(s sdk.Span) float64 {
	user, okUser := s.Delta(sdk.CPUUser)
	system, okSystem := s.Delta(sdk.CPUSystem)
	if !okUser || !okSystem || user+system <= 0 {
		return 1
	}
	return system / (user + system)
}

// crowded says that the process has more threads than CPUs, and that they wait
// for them. Threads that are there for something else and sleep do not wait.
func (l load) crowded() bool {
	return l.threads > l.cpus && l.run >= leastRun && l.wait >= openmp.LeastWait
}

// share is the part of the CPU time, 0 to maxShare, that goes into switching
// between threads. A team that has a CPU for each thread spins between regions
// that follow one another closely, and does not switch at all.
func (l load) share() float64 {
	if l.run <= 0 {
		return 0
	}
	return min(maxShare, systemFactor*l.system, (l.sleeps*sleepSeconds+l.yields*yieldSeconds)/l.run)
}

// gain is how many times faster the regions get when nothing goes into switching,
// and when the threads take the CPU time that they had to do without while they
// were woken one after the other: libgomp lets a CPU idle meanwhile. Own
// derivation; model_test.go compares it with what was measured.
func (l load) gain() float64 {
	if l.run <= 0 {
		return 1
	}
	return max(1, min(l.cpus, l.run+l.wait)/l.run) / (1 - l.share())
}

// add sums up the loads of processes, as if they shared their CPUs.
func (l load) add(o load) load {
	sum := load{
		run: l.run + o.run, wait: l.wait + o.wait, sleeps: l.sleeps + o.sleeps, yields: l.yields + o.yields,
		threads: l.threads + o.threads, cpus: max(l.cpus, o.cpus),
	}
	if sum.run > 0 {
		sum.system = (l.system*l.run + o.system*o.run) / sum.run
	}
	return sum
}

// sets is how many sets of CPUs there are at least under so many processes, which
// do the load together: no more than its CPUs can run on one set. Ranks that are
// bound to cores of their own are told by that from processes that share them, as
// far as they use them. Own derivation.
func (l load) sets(processes int) int {
	return max(1, min(processes, int(math.Ceil(l.run/max(1, l.cpus)-setNoise))))
}

// sharers is how many of the processes are on one such set.
func (l load) sharers(processes int) int {
	sets := l.sets(processes)
	return (processes + sets - 1) / sets
}

// threadsFor is how many threads a process should have that shares its CPUs
// evenly with others of its kind: teams that do not fit beside one another only
// switch again, or spin against each other.
func threadsFor(cpus float64, processes int) uint64 {
	return max(1, uint64(cpus)/uint64(max(1, processes)))
}
