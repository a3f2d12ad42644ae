// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// knob is the name of what is changed.
const knob = "thread.affinity"

// leastCalls of read and write per second, of all that are changed and all the time,
// from which they are taken for progress; below, CPU time is: what a program writes now
// and then may go by the clock.
const leastCalls = 100

// confidence in the models: of both, the gain is an upper bound.
const confidence = 0.4

func single(cpu int) string { return strconv.Itoa(cpu) }

// free finds threads that lack a CPU because they are bound; false if there are none
// that are worth it. By CPU time a change cannot be judged that gives threads more
// CPUs, useful or not, than somebody chose for them: then only those are freed that
// are bound to one core each.
func (n *node) free() (finding, bool) {
	f, ok := n.unbind(func(demand, *process) bool { return true })
	if ok && !f.calls && f.wide {
		return n.unbind(func(d demand, p *process) bool { return onCore(d.allowed, p.usable) })
	}
	return f, ok
}

// lack is what the bound threads of a process lack.
type lack struct {
	wait float64 // seconds per second
	wide bool    // some of them are bound to more than a core
}

// bound lists what the threads do of which enough is known, the processes that lack a
// CPU because threads of some kind are bound, and the CPUs that they all could have.
func (n *node) bound(kind func(demand, *process) bool) (demands []demand, lacking map[*process]lack, cpus map[int]bool) {
	lacking, cpus = map[*process]lack{}, map[int]bool{}
	for _, t := range sortedTasks(n) {
		if !t.known() {
			continue
		}
		d := t.demand()
		d.bound = d.bound && t.process.proposal == "" && kind(d, t.process)
		demands = append(demands, d)
		for cpu := range t.process.usable.Numbers() {
			cpus[cpu] = true
		}
		if d.bound {
			l := lacking[t.process]
			lacking[t.process] = lack{l.wait + d.wait, l.wide || !onCore(d.allowed, t.process.usable)}
		}
	}
	maps.DeleteFunc(lacking, func(_ *process, l lack) bool { return l.wait < waiting })
	return demands, lacking, cpus
}

// unbind is free for the bound threads of some kind.
func (n *node) unbind(kind func(demand, *process) bool) (finding, bool) {
	demands, lacking, cpus := n.bound(kind)
	s := spreadOver(append(demands, n.others()...), len(cpus))
	if len(lacking) == 0 || !s.worthwhile() {
		return finding{}, false
	}
	f := finding{scope: "node/" + n.host, gain: s.gain()}
	var calls float64
	for _, p := range sortedProcesses(n) {
		if l, found := lacking[p]; found {
			f.members = append(f.members, p)
			f.changes = append(f.changes, sdk.Change{
				Process: p.handle, Action: sdk.SystemSetting(knob, sdk.Text(string(p.usable))),
			})
			calls += p.calls()
			f.wide = f.wide || l.wide
		}
	}
	if f.calls = calls >= leastCalls; !f.calls {
		f.scope = n.timeScope()
	}
	f.reason = fmt.Sprintf("%d threads, %.3g for each process, are bound to some of %d CPUs: they run %.1f s per second, and wait %.1f s for a CPU",
		s.bound, float64(s.bound)/float64(len(f.members)), len(cpus), s.run, s.wait)
	return f, true
}

// others are the processes whose threads are not known, each as one or more threads.
func (n *node) others() []demand {
	var out []demand
	for _, p := range sortedProcesses(n) {
		if p.looked {
			continue
		}
		for run, wait := p.load(); run+wait > 0; run, wait = run-1, 0 {
			out = append(out, demand{run: min(1, run), wait: wait})
		}
	}
	return out
}

// join finds pairs that talk across CPUs; false if there are none that are worth it.
func (n *node) join() (finding, bool) {
	pairs := n.pairs()
	if len(pairs) == 0 {
		return finding{}, false
	}
	f := finding{calls: true, scope: "pairs/" + n.host, pairs: pairs, changes: changes(pairs), gain: pairs[0].gain()}
	var trips, run float64
	for _, p := range pairs {
		f.gain = min(f.gain, p.gain())
		trips += p.trips()
		run += p.run()
		for _, t := range []*task{p.a, p.b} {
			if !slices.Contains(f.members, t.process) {
				f.members = append(f.members, t.process)
			}
		}
	}
	f.reason = fmt.Sprintf("%d threads wake each other in pairs, across CPUs, %.0f times a second, and run %.1f s per second for it",
		2*len(pairs), trips, run)
	return f, true
}

// propose proposes what was found.
func (n *node) propose(h *sdk.Host) {
	n.sequence++
	n.proposal = fmt.Sprintf("%s-%s-%d", Name, n.host, n.sequence)
	for _, p := range n.found.members {
		p.proposal = n.proposal
	}
	n.enter(judged, h.Now())
	h.Propose(sdk.Proposal{
		ID: n.proposal, Changes: n.found.changes, Scope: n.found.scope, Reason: n.found.reason,
		PredictedGain: n.found.gain, Confidence: confidence,
	})
}

// ended hears what became of a proposal. One whose processes have ended did not fail.
func (n *node) ended(h *sdk.Host, c sdk.ProposalChange) {
	if c.State != sdk.Kept {
		n.forget(h, c.Proposal)
	}
	if c.Proposal != n.proposal {
		return // an earlier one, that had been kept
	}
	members, pairs := n.found.members, n.found.pairs
	n.calm(h)
	if len(members) == 0 {
		return
	}
	if c.State == sdk.Kept {
		n.backoff.Reset()
		if len(pairs) > 0 {
			n.joined[c.Proposal] = newJoined(pairs, members)
			return
		}
		for _, p := range members {
			h.Want(p.handle, sdk.NoSamples())
		}
		return
	}
	n.failures++
	n.until = h.Now().Add(sdk.RetryPause)
	if c.State == sdk.Failed || c.State == sdk.Advised || n.failures >= maxTries {
		n.failures = 0
		for _, p := range members {
			p.gaveUp = true
			p.rest(h)
		}
	}
}

// changedBy says whether a proposal changed one of the processes.
func (n *node) changedBy(proposal string) bool {
	for _, p := range n.processes {
		if p.proposal == proposal {
			return true
		}
	}
	return false
}

// forget forgets what a proposal changed: it is taken back.
func (n *node) forget(h *sdk.Host, proposal string) {
	delete(n.joined, proposal)
	for _, p := range sortedProcesses(n) {
		if p.proposal == proposal {
			p.proposal = ""
			p.rest(h)
		}
	}
}
