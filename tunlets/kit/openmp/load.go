// SPDX-License-Identifier: Apache-2.0

package openmp

import "github.com/attune-hpc/attune/tunlets/sdk"

// Load is what a process' threads do, per second of real time.
type Load struct {
	// Run and Wait are seconds on a CPU, and seconds ready but without one.
	Run, Wait float64
	// Sleeps are voluntary switches, Yields those to a thread that is ready.
	Sleeps, Yields float64
	// System is the part of the CPU time, 0 to 1, that is spent in the kernel; 1
	// where that is not known.
	System float64
	// Threads there are, and the CPUs that they may use.
	Threads, CPUs float64
}

// Load is what the team did over [Span]; false before it is known, or if signals are
// missing.
func (t *Team) Load() (Load, bool) {
	span := t.Window.Latest(Span)
	run, okRun := span.Rate(sdk.RunTime)
	wait, okWait := span.Rate(sdk.RunqueueWait)
	sleeps, okSleeps := span.Rate(sdk.VoluntarySwitches)
	yields, okYields := span.Rate(sdk.InvoluntarySwitches)
	threads, okThreads := t.Window.Last(sdk.Threads)
	cpus, okCPUs := t.Window.Last(sdk.CPUsAllowed)
	known := span.Duration() >= Span*9/10 && okRun && okWait && okSleeps && okYields && okThreads && okCPUs && cpus >= 1
	if !known {
		return Load{}, false
	}
	return Load{
		Run: run * 1e-9, Wait: wait * 1e-9, Sleeps: sleeps, Yields: yields, System: systemOf(span), Threads: threads, CPUs: cpus,
	}, true
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
