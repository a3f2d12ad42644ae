// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"time"

	"github.com/attune-hpc/attune/internal/account"
)

// spans are what the time went into from look to look.
type spans struct {
	seconds   float64 // of the last look, since the start
	cpu, wait time.Duration
	waits     time.Duration // for a CPU, as far as the looks saw
	credit    float64       // CPU time that was told late, by the kernel's ticks
	ran       float64       // seconds in which threads ran
	queued    float64       // in which they waited for a CPU
	waited    [causes]float64
	unknown   float64 // in which none ran, and what for is not known yet
}

// tick is the most by which a process's CPU time may be told too late.
const tick = 0.020

// add takes the time since the last look. reason is asked where no thread ran in a part
// of it.
func (s *spans) add(seconds float64, cpu, queue time.Duration, reason func() cause) {
	passed := seconds - s.seconds
	if passed <= 0 {
		return
	}
	more := max(0, queue-s.wait) // less: a process has ended that nobody has added up
	ran, queued := max(0, (cpu-s.cpu).Seconds()), more.Seconds()
	s.seconds, s.cpu, s.wait, s.waits = seconds, max(cpu, s.cpu), queue, s.waits+more
	ran += s.credit
	s.credit = 0
	if all := ran + queued; all > passed {
		s.credit = min(max(0, ran-passed), tick)
		ran, queued = ran*passed/all, queued*passed/all
	}
	s.ran += ran
	s.queued += queued
	idle := max(0, passed-ran-queued) // rounding leaves less than nothing
	s.unknown += idle
	if idle <= passed/50 { // less than a look can tell
		return
	}
	if why := reason(); why < causes {
		s.waited[why] += s.unknown
		s.unknown = 0
	}
}

// fill fills in what the wall time went into, from the looks and from the sums at the end,
// and how long threads waited for a CPU, if the source has no sum of that.
func (s *spans) fill(a *account.Account) {
	if a.CPUSeconds == nil || a.SystemSeconds == nil || a.WallSeconds <= 0 {
		return
	}
	queue := s.wait
	if a.CPUWaitSeconds != nil {
		queue = seconds(*a.CPUWaitSeconds)
	}
	s.add(a.WallSeconds, seconds(*a.CPUSeconds), queue, func() cause { return unseen })
	s.scale(a.WallSeconds)
	const looks = "CPU time of all threads at each look, and what they wait for where none runs (/proc/PID/task/TID/wchan)"
	if a.CPUWaitSeconds == nil {
		a.CPUWaitSeconds = new(s.waits.Seconds())
		a.Note(account.Sampled, "/proc/PID/task/TID/schedstat of living threads", "cpu_wait_seconds")
	}
	kernel := 0.0
	if *a.CPUSeconds > 0 {
		kernel = s.ran * min(1, *a.SystemSeconds / *a.CPUSeconds)
	}
	w := &s.waited
	a.Time = account.Time{
		Computing: new(s.ran - kernel), Kernel: &kernel, CPU: &s.queued, Disk: &w[forDisk], Network: &w[forNetwork], Pipes: &w[forPipes],
		Events: &w[forEvents], Locks: &w[forLocks], Sleep: &w[forSleep], Other: new(w[forOther] + s.unknown),
	}
	for _, name := range []string{"computing", "kernel", "cpu_wait", "disk", "network", "pipes", "events", "locks", "sleep", "other"} {
		a.Note(account.Sampled, looks, "time."+name+"_seconds")
	}
}

// scale makes the parts add up to the wall time where looks went on after its end, at
// processes that the command left behind.
func (s *spans) scale(wall float64) {
	if s.seconds <= wall {
		return
	}
	by := wall / s.seconds
	s.ran, s.queued, s.unknown = s.ran*by, s.queued*by, s.unknown*by
	for i := range s.waited {
		s.waited[i] *= by
	}
}

// ownTimes is the CPU time that is known of each process by itself.
func ownTimes(tree []account.Process) (sum time.Duration) {
	for _, p := range tree {
		if p.CPUSeconds != nil {
			sum += seconds(*p.CPUSeconds)
		}
	}
	return sum
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
