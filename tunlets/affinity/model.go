// SPDX-License-Identifier: Apache-2.0

package affinity

import "github.com/attune-hpc/attune/tunlets/sdk"

const (
	// leastWait is the CPUs' worth of waiting for a CPU, of all bound threads of a
	// node together, from which they are in trouble.
	leastWait = 0.3
	// waiting is that of one process from which it is one of them.
	waiting = 0.2
	// idle is the part of a CPU below which it does not matter where a thread runs.
	idle = 0.02
	// leastGain is the predicted gain from which a change is worth a try.
	leastGain = 1.3
)

// demand is what a thread does per second of real time.
type demand struct {
	run, wait float64     // seconds on a CPU, and ready but without one
	bound     bool        // it could be given CPUs that it may not use now
	allowed   sdk.CPUList // bound: those that it may use
}

// want is the part of a CPU that the thread would use if it never had to wait. It
// is an upper bound: a thread that waits for another one might sleep instead.
func (d demand) want() float64 { return min(1, d.run+d.wait) }

// spread is what a node's threads would gain if all that are bound could use the
// CPUs that there are.
type spread struct {
	bound     int     // threads
	run, wait float64 // of the bound ones: CPUs' worth
	after     float64 // run if they are bound no more
}

// spreadOver is that for the given threads, all that are known of the node, on a
// number of CPUs. Own derivation: where bound threads wait, what they do not get of
// their CPUs others have, and those are taken to have as much of each other CPU. The
// rest the scheduler shares: each thread gets what it wants, and all of them less in
// the same ratio where that is more than there is.
func spreadOver(threads []demand, cpus int) spread {
	var s spread
	var all, wanted float64
	places := map[int]bool{} // that they are bound to
	for _, d := range threads {
		all += d.want()
		if !d.bound || d.want() < idle {
			continue
		}
		s.bound++
		s.run += d.run
		s.wait += d.wait
		wanted += d.want()
		for cpu := range d.allowed.Numbers() {
			places[cpu] = true
		}
	}
	if s.bound > 0 && len(places) > 0 {
		share := min(1, s.run/float64(len(places)))
		s.after = wanted * min(1, float64(cpus)*share/all)
	}
	return s
}

// gain is how many times more the bound threads would run.
func (s spread) gain() float64 {
	if s.run <= 0 {
		return 1
	}
	return s.after / s.run
}

// worthwhile says whether it is worth a try.
func (s spread) worthwhile() bool {
	return s.bound > 0 && s.wait >= leastWait && s.run > 0 && s.gain() >= leastGain
}

// coreCPUs is how many CPUs a core has at most.
const coreCPUs = 2

// onCore says that a thread may use no more than one core of several: one CPU, or two
// where there are so many that they are no part that somebody would choose.
func onCore(allowed, usable sdk.CPUList) bool {
	n := allowed.Count()
	return n <= 1 || n <= coreCPUs && usable.Count() > 2*coreCPUs
}

// covers says whether a thread that is allowed some CPUs may use all usable ones.
func covers(allowed, usable sdk.CPUList) bool {
	if allowed == usable {
		return true
	}
	has := map[int]bool{}
	for cpu := range allowed.Numbers() {
		has[cpu] = true
	}
	for cpu := range usable.Numbers() {
		if !has[cpu] {
			return false
		}
	}
	return true
}
