// SPDX-License-Identifier: Apache-2.0

package masterworker

import (
	"math"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Measured is what the program did over some time, all its processes together.
type Measured struct {
	// Seconds is how long.
	Seconds float64
	// Rounds that began.
	Rounds float64
	// Value of the variable at their beginning, the latest one; 0 while it is not known,
	// which may be for good: one that differs from round to round never is.
	Value float64
	// Dispatches, and the seconds that they took.
	Dispatches, DispatchSeconds float64
	// Tasks, and the seconds that they took, of all workers together.
	Tasks, TaskSeconds float64
	// RunShare is the part, 0 to 1, of the time that threads wanted a CPU in which
	// they had one; see Share.
	RunShare float64
	// CPUs that the program may run on, on all its hosts together.
	CPUs float64
}

// Share is the part, 0 to 1, that is left of a call's time when workers are not in
// each other's way: times of calls include waiting for a CPU. Own derivation: as
// many workers as that make each other wait for 1 - CPUs/workers of the time at
// most. What goes beyond comes from other programs, and stays.
func (m Measured) Share(workers float64) float64 {
	return max(m.RunShare, min(1, m.CPUs/workers))
}

// Period is the seconds that a round takes.
func (m Measured) Period() float64 { return m.Seconds / m.Rounds }

// Enough says that there is something to judge by: rounds that were worked in.
func (m Measured) Enough() bool {
	return m.Seconds >= leastSeconds && m.Rounds >= leastRounds && m.Tasks > 0 && m.Dispatches > 0
}

// add takes one interval of one process. A round is counted in the master only.
// real says that the variable is a double.
func (m *Measured) add(kind string, a sdk.Aggregate, master, real bool) {
	count, seconds := float64(a.Count), float64(a.Sum)*1e-9
	switch kind {
	case kindRound:
		if !master {
			return
		}
		m.Rounds += count
		if a.Count > 0 && a.Min == a.Max {
			m.Value = number(a.Min, real)
		}
	case kindDispatch:
		m.Dispatches += count
		m.DispatchSeconds += seconds
	case kindTask:
		m.Tasks += count
		m.TaskSeconds += seconds
	}
}

// number is the value of a variable from its bits, sign extended.
func number(bits uint64, real bool) float64 {
	if v := math.Float64frombits(bits); real && !math.IsNaN(v) {
		return v
	} else if real {
		return 0
	}
	return float64(int64(bits))
}

// runShare is the part of the wanted CPU time that processes had; 1 where it is
// not known.
func runShare(spans []sdk.Span) float64 {
	var run, wait float64
	for _, s := range spans {
		r, okRun := s.Rate(sdk.RunTime)
		w, okWait := s.Rate(sdk.RunqueueWait)
		if okRun && okWait {
			run += r
			wait += w
		}
	}
	if run <= 0 {
		return 1
	}
	return run / (run + wait)
}

// site is what the members of the program on one host may use.
type site struct {
	sum    float64 // of the CPUs that each may run on
	usable float64 // that there are for them, as far as is known
}

// cpus is how many CPUs the program may run on: on each host what its processes may
// use together, but no more than there are for them. Processes that are bound to
// the same few CPUs of many count as if they were on different ones. Members that
// are not known to be part of the program, or have no sample yet, do not count.
func (t *Tunlet) cpus() (sum float64) {
	sites := map[string]site{}
	for _, m := range t.members {
		allowed, ok := m.window.Last(sdk.CPUsAllowed)
		if !m.watched() || !ok {
			continue
		}
		s := sites[m.host]
		sites[m.host] = site{sum: s.sum + allowed, usable: max(s.usable, allowed, float64(m.usable.Count()))}
	}
	for _, s := range sites {
		sum += min(s.sum, s.usable)
	}
	return sum
}
