// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"github.com/attune-hpc/attune/tunlets/kit/spin"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// busyShare is the part of the time, running or waiting to run, from which
	// a rank counts as wanting a CPU all the time.
	busyShare = 0.8
	// leastWait is the part of the time that the ranks must wait for a CPU.
	// Without waiting nobody is crowded, whatever the sizes of the CPU sets
	// say: ranks bound to CPUs of their own may run on one CPU each.
	leastWait = 0.1

	// leastBlocked is the part of the time that blocked calls must cost.
	leastBlocked = 0.05
	// maxBlocked keeps the predicted gain finite.
	maxBlocked = 0.95
)

// rankLoad is what a rank does with the CPUs, per second of real time.
type rankLoad struct {
	// run and wait are seconds on a CPU and seconds runnable without one.
	run, wait float64
	// voluntary and involuntary are context switches.
	voluntary, involuntary float64
	// cpus is how many CPUs the rank may run on.
	cpus float64
}

// loadOf reads a load from a span; cpus is used where no sample tells. False
// if signals are missing.
func loadOf(s sdk.Span, cpus float64) (rankLoad, bool) {
	run, okRun := s.Rate(sdk.RunTime)
	wait, okWait := s.Rate(sdk.RunqueueWait)
	voluntary, okVoluntary := s.Rate(sdk.VoluntarySwitches)
	involuntary, okInvoluntary := s.Rate(sdk.InvoluntarySwitches)
	return rankLoad{
		run: run * 1e-9, wait: wait * 1e-9,
		voluntary: voluntary, involuntary: involuntary, cpus: cpus,
	}, okRun && okWait && okVoluntary && okInvoluntary && cpus > 0
}

// busy says that the rank wants a CPU all the time.
func (l rankLoad) busy() bool { return l.run+l.wait >= busyShare }

// spins says that the rank keeps its CPU until the scheduler takes it away.
func (l rankLoad) spins() bool { return spin.Detect(l.run, l.voluntary, l.involuntary) }

// crowd sums up the busy ranks of one node.
type crowd struct {
	// ranks that are busy, and those of them that spin.
	ranks, spinning int
	// pressure is the number of busy ranks per CPU, as far as the sizes of
	// their CPU sets tell: each rank weighs 1/CPUs. It is exact when the sets
	// are the same, and too high when they are disjoint.
	pressure float64
	// run and wait are summed, per second.
	run, wait float64
	// switches per second.
	switches float64
}

func (c *crowd) add(l rankLoad) {
	if !l.busy() {
		return
	}
	c.ranks++
	if l.spins() {
		c.spinning++
	}
	c.pressure += 1 / l.cpus
	c.run += l.run
	c.wait += l.wait
	c.switches += l.voluntary + l.involuntary
}

// join adds the busy ranks of another node, for people to read: the sums say
// nothing about pressure.
func (c *crowd) join(o crowd) {
	c.ranks += o.ranks
	c.run += o.run
	c.wait += o.wait
	c.switches += o.switches
}

// crowded says that there are more busy ranks than CPUs for them: by the sizes
// of their CPU sets, which alone would take ranks on disjoint sets for crowded,
// and by the waiting that follows, which alone would take ranks beside somebody
// else's busy program for crowded. n ranks on c CPUs wait 1 - c/n of the time;
// since c is not known exactly, waiting that matters is enough.
func (c crowd) crowded() bool {
	const rounding = 1e-9 // pressure is a sum of fractions
	return c.ranks >= 2 && c.pressure > 1+rounding && c.wait >= leastWait*float64(c.ranks)
}

// spins says that most of the busy ranks spin.
func (c crowd) spins() bool { return 2*c.spinning > c.ranks }

// ratio is busy ranks per CPU that they really had: the time they wanted by
// the time they got.
func (c crowd) ratio() float64 {
	if c.run <= 0 {
		return 1
	}
	return (c.run + c.wait) / c.run
}

// slice is how long a rank keeps a CPU, in seconds: measured as CPU time per
// switch, since it differs with the kernel's HZ and scheduler.
func (c crowd) slice() float64 {
	if c.switches <= 0 {
		return 0
	}
	return c.run / c.switches
}

// blocked is the part of the time, 0 to maxBlocked, that blocked calls cost at
// the given MPI calls per second and rank.
//
// Measured model: a blocked call costs up to (ranks/cores - 1) time slices,
// because the rank it waits for must first get a CPU from those that spin.
// Own derivations: ranks/cores and the slice are measured (ratio, slice), and
// every call is taken for a blocked one, which is too much for calls that do
// not wait and too little where a chain of ranks has to run in turn.
func (c crowd) blocked(callsPerRank float64) float64 {
	return min(maxBlocked, callsPerRank*(c.ratio()-1)*c.slice())
}

// gain is how many times faster the program gets when the blocked part of its
// time is saved.
func gain(blocked float64) float64 { return 1 / (1 - blocked) }
