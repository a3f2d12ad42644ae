// SPDX-License-Identifier: Apache-2.0

package openmp

import (
	"slices"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// Span is how long a team must have a symptom before it is touched.
	Span = 300 * time.Millisecond
	// LeastWait is the CPUs' worth of waiting for a CPU, of all its threads
	// together, from which it may have one.
	LeastWait = 0.2
)

// Team is the threads of one process with an OpenMP run-time.
type Team struct {
	// Handle and Runtime of the process.
	Handle  sdk.Handle
	Runtime Runtime
	// Window has its latest samples.
	Window *sdk.Window
	// Proposal is the id of what changed it, while in force or under way.
	Proposal string
	// GaveUp says that nothing can be done for it.
	GaveUp bool

	points []string // measure points that are asked for
}

// NewTeam follows a process.
func NewTeam(p sdk.Handle, r Runtime) Team {
	return Team{Handle: p, Runtime: r, Window: sdk.NewWindow(Span)}
}

// Common is what every tunlet's team has.
func (t *Team) Common() *Team { return t }

// Watched says whether its regions are counted.
func (t *Team) Watched() bool { return len(t.points) > 0 }

// Watch asks for measure points of its regions: [Runtime.Regions], and maybe
// [Runtime.Durations].
func (t *Team) Watch(h *sdk.Host, points ...sdk.Point) {
	if t.Watched() {
		return
	}
	for _, p := range points {
		t.points = append(t.points, p.ID)
		h.AddPoint(p)
	}
}

// CountOnly gives back what is not [Runtime.Regions].
func (t *Team) CountOnly(h *sdk.Host) { t.keep(h, PointID(t.Handle)) }

// Unwatch gives all of them back.
func (t *Team) Unwatch(h *sdk.Host) { t.keep(h, "") }

func (t *Team) keep(h *sdk.Host, id string) {
	t.points = slices.DeleteFunc(t.points, func(point string) bool {
		if point != id {
			h.RemovePoint(point)
		}
		return point != id
	})
}

// Doze wants no samples before the threads wait for a CPU, unless they do already,
// by what is known: wait is in CPUs' worth.
func (t *Team) Doze(h *sdk.Host, wait float64, known bool) {
	if !t.Window.Empty() && (!known || wait >= LeastWait) {
		return
	}
	t.Window.Reset()
	h.Want(t.Handle, sdk.SamplesFrom(Waits()))
}

// Waits is reached by a process whose threads have to wait for a CPU.
func Waits() sdk.Level {
	return sdk.Level{Signal: sdk.RunqueueWait, AtLeast: LeastWait * float64(time.Second)}
}

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
