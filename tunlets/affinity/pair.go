// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"cmp"
	"maps"
	"slices"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// leastSleeps is how often per second both of a pair go to sleep. Who sleeps
	// less often does not spend its time on being woken.
	leastSleeps = 5_000
	// leastBound is that of a pair that is bound to different CPUs, on which it has to
	// wait for others each time.
	leastBound = 100
	// alike is by how much the numbers of both may differ, as a ratio.
	alike = 0.2
	// maxRun is the CPUs' worth of running of both together: more does not fit on one.
	maxRun = 0.95
	// leastApart is the part of the time that both are on different CPUs. Where
	// others have the CPUs too, the scheduler itself keeps a pair on one.
	leastApart = 0.5
	// leastRounds is in how many readings both must have been read.
	leastRounds = 5
	// switchSeconds is what a round trip takes beside what the program itself does
	// when both are on one CPU: two system calls and a switch on either side.
	switchSeconds = 5e-6
	// maxGain is about what the best case gained.
	maxGain = 10
)

// pair is two threads that hand something to and fro.
type pair struct {
	a, b *task
	cpu  int // to join them on
}

// trips is how many round trips they make per second.
func (p pair) trips() float64 { return (p.a.sleeps() + p.b.sleeps()) / 2 }

// run is what both run together: CPUs' worth.
func (p pair) run() float64 { return p.a.run() + p.b.run() }

// gain is how many times more round trips there would be on one CPU: the processes'
// own work and the switches take their time, and waking across CPUs takes none. Own
// derivation; an upper bound where others have the CPU as well.
func (p pair) gain() float64 {
	own := p.a.process.user()
	if p.b.process != p.a.process {
		own += p.b.process.user()
	}
	return min(maxGain, max(1, 1/(own+p.trips()*switchSeconds)))
}

// boundApart says that the two are bound to different CPUs, and have to wait there.
func boundApart(a, b *task) bool {
	for cpu := range sdk.CPUList(a.last.CPUsAllowed).Numbers() {
		if sdk.CPUList(b.last.CPUsAllowed).Has(cpu) {
			return false
		}
	}
	return a.wait()+b.wait() >= leastWait
}

// pairs are those that would gain, the fastest first, each with a CPU of its own.
func (n *node) pairs() []pair {
	var out []pair
	tasks := n.sleepers()
	for i, a := range tasks {
		for _, b := range tasks[i+1:] {
			if matches(a, b) {
				out = append(out, pair{a: a, b: b})
			}
		}
	}
	out = unambiguous(out)
	slices.SortStableFunc(out, func(p, q pair) int { return cmp.Compare(q.trips(), p.trips()) })
	out = slices.DeleteFunc(out, func(p pair) bool {
		return p.gain() < leastGain || apart(p.a, p.b, leastRounds) < leastApart
	})
	return n.seated(out)
}

// sleepers are the threads that may be half of a pair, in a fixed order.
func (n *node) sleepers() []*task {
	var out []*task
	for _, t := range sortedTasks(n) {
		if t.process.proposal == "" && t.known() && t.sleeps() >= leastBound {
			out = append(out, t)
		}
	}
	return out
}

// matches says whether two threads are as a pair is: each wakes the other one, they
// are connected, and both together do not use a CPU.
func matches(a, b *task) bool {
	most, least := max(a.sleeps(), b.sleeps()), min(a.sleeps(), b.sleeps())
	return most-least <= alike*most && a.run()+b.run() <= maxRun &&
		(least >= leastSleeps || boundApart(a, b)) &&
		(linked(a.process.ends, b.process.ends) || linked(b.process.ends, a.process.ends))
}

// unambiguous leaves out pairs of which one thread is in another pair as well.
func unambiguous(pairs []pair) []pair {
	in := map[*task]int{}
	for _, p := range pairs {
		in[p.a]++
		in[p.b]++
	}
	return slices.DeleteFunc(pairs, func(p pair) bool { return in[p.a] > 1 || in[p.b] > 1 })
}

// seated gives each pair the CPU that the fewest others of the application use;
// pairs for which there is none of its own are left out.
func (n *node) seated(pairs []pair) []pair {
	taken := maps.Clone(n.taken())
	var out []pair
	for _, p := range pairs {
		cpu, found := n.leastUsed(p, taken)
		if !found {
			continue
		}
		taken[cpu] = true
		p.cpu = cpu
		out = append(out, p)
	}
	return out
}

// leastUsed is the CPU that both may use, that no other pair has, and on which the
// other threads run least; of equal ones, that on which the first of the pair is.
func (n *node) leastUsed(p pair, taken map[int]bool) (cpu int, found bool) {
	use := map[int]float64{int(p.a.last.LastCPU): -1e-3}
	for _, t := range n.tasks {
		if t != p.a && t != p.b && t.known() {
			use[int(t.last.LastCPU)] += t.run()
		}
	}
	for c := range p.a.process.usable.Numbers() {
		if taken[c] || !p.b.process.usable.Has(c) {
			continue
		}
		if !found || use[c] < use[cpu] {
			cpu, found = c, true
		}
	}
	return cpu, found
}

// changes put each thread of the pairs on its pair's CPU.
func changes(pairs []pair) []sdk.Change {
	var out []sdk.Change
	for _, p := range pairs {
		for _, t := range []*task{p.a, p.b} {
			if string(t.last.CPUsAllowed) == single(p.cpu) {
				continue // it is there
			}
			out = append(out, sdk.Change{
				Process: t.process.handle,
				Action:  sdk.SystemSettingOn(knob, int32(t.last.TID), sdk.Text(single(p.cpu))),
			})
		}
	}
	return out
}
