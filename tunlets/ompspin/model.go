// SPDX-License-Identifier: Apache-2.0

package ompspin

import (
	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/kit/spin"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// leastRun is the CPUs' worth of running from which a team is in trouble.
	leastRun = 0.3
	// sleepSeconds is the CPU time that a region takes more where its threads
	// sleep at its ends. Measured with two threads and two such teams on two CPUs
	// of a virtual machine: 125,000 regions/s of nothing else in one CPU second;
	// with it, 14,300 regions/s were predicted where 14,200 were measured (regions
	// of 31 us).
	sleepSeconds = 8e-6
	// leastGain is the predicted gain from which a change is worth a try.
	leastGain = 1.3
	// maxBlocked keeps the gain finite.
	maxBlocked = 0.95
)

// load is what a team does.
type load openmp.Load

// active says that the team is at work.
func (l load) active() bool { return l.Run+l.Wait >= leastRun }

// spins says that the team waits for CPUs, while its threads never give one back.
// libgomp lets them spin only where there is a CPU for each.
func (l load) spins() bool {
	return l.Threads >= 2 && l.Threads <= l.CPUs && l.Run >= leastRun && l.Wait >= openmp.LeastWait &&
		spin.Detect(l.Run, l.Sleeps, l.Yields)
}

// regions is what was counted of a team's parallel regions over some time.
type regions struct {
	seconds, count float64
	// least is the shortest one, in seconds: hardly disturbed. 0: none was timed.
	least float64
}

func (r *regions) add(count uint64, seconds float64) {
	r.count += float64(count)
	r.seconds += seconds
}

func (r *regions) time(a sdk.Aggregate) {
	if least := float64(a.Min) * 1e-9; a.Count > 0 && (r.least == 0 || least < r.least) {
		r.least = least
	}
}

// rate is regions per second.
func (r regions) rate() float64 {
	if r.seconds <= 0 {
		return 0
	}
	return r.count / r.seconds
}

// asleep is how many regions per second the team would get done if its threads
// slept: in the CPU time that it gets, each takes what it takes undisturbed, on all
// of its threads, and what sleeping costs. Own derivation.
func (r regions) asleep(l load) float64 {
	if r.least == 0 {
		return 0
	}
	return l.Run / (l.Threads*r.least + sleepSeconds)
}

// blocked is the part of the time, 0 to maxBlocked, that the team waits for the
// threads that have no CPU, where every region has to: the model of mpi-progress,
// whose slices it takes from the CPU time per switch. Else 0.
func (r regions) blocked(l load) float64 {
	switches := l.Sleeps + l.Yields
	if r.count == 0 || switches < r.rate()/2 {
		return 0
	}
	return min(maxBlocked, r.rate()*l.Wait/switches)
}

// predicted is the regions per second after the change: by the shortest region
// or, where not even that one was undisturbed, by what blocking costs.
func (r regions) predicted(l load) float64 {
	if blocked := r.blocked(l); blocked > 0 {
		return max(r.asleep(l), r.rate()/(1-blocked))
	}
	return r.asleep(l)
}
