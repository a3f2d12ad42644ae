// SPDX-License-Identifier: Apache-2.0

package ompthreads

import (
	"math"

	"github.com/attune-hpc/attune/tunlets/kit/openmp"
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

// load is what a process' threads do, or those of several.
type load openmp.Load

// crowded says that the process has more threads than CPUs, and that they wait
// for them. Threads that are there for something else and sleep do not wait.
func (l load) crowded() bool {
	return l.Threads > l.CPUs && l.Run >= leastRun && l.Wait >= openmp.LeastWait
}

// share is the part of the CPU time, 0 to maxShare, that goes into switching
// between threads. A team that has a CPU for each thread spins between regions
// that follow one another closely, and does not switch at all.
func (l load) share() float64 {
	if l.Run <= 0 {
		return 0
	}
	return min(maxShare, systemFactor*l.System, (l.Sleeps*sleepSeconds+l.Yields*yieldSeconds)/l.Run)
}

// gain is how many times faster the regions get when nothing goes into switching,
// and when the threads take the CPU time that they had to do without while they
// were woken one after the other: libgomp lets a CPU idle meanwhile. Own
// derivation; model_test.go compares it with what was measured.
func (l load) gain() float64 {
	if l.Run <= 0 {
		return 1
	}
	return max(1, min(l.CPUs, l.Run+l.Wait)/l.Run) / (1 - l.share())
}

// add sums up the loads of processes, as if they shared their CPUs.
func (l load) add(o load) load {
	sum := load{
		Run: l.Run + o.Run, Wait: l.Wait + o.Wait, Sleeps: l.Sleeps + o.Sleeps, Yields: l.Yields + o.Yields,
		Threads: l.Threads + o.Threads, CPUs: max(l.CPUs, o.CPUs),
	}
	if sum.Run > 0 {
		sum.System = (l.System*l.Run + o.System*o.Run) / sum.Run
	}
	return sum
}

// sets is how many sets of CPUs there are at least under so many processes, which
// do the load together: no more than its CPUs can run on one set. Ranks that are
// bound to cores of their own are told by that from processes that share them, as
// far as they use them. Own derivation.
func (l load) sets(processes int) int {
	return max(1, min(processes, int(math.Ceil(l.Run/max(1, l.CPUs)-setNoise))))
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
