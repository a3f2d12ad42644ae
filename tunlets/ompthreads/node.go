// SPDX-License-Identifier: Apache-2.0

package ompthreads

import (
	"fmt"
	"math"
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// baseline is how many values of the objective there must be before a
	// proposal.
	baseline = 5
	// patience is how long regions are counted without a confirmation.
	patience = 3 * time.Second
	// roomFor is how long there must be room for more threads before a change is
	// taken back.
	roomFor = time.Second
	// hookPatience is how long a safe point is waited for. Where the first thread
	// does not allocate memory, libgomp's word is written instead.
	hookPatience = 200 * time.Millisecond
)

// knob is the name of what is changed.
const knob = "omp.num_threads"

// node knows the teams of one node.
type node struct {
	*openmp.Teams[*team]

	host             string
	regions, seconds float64 // counted since counting began
	refusal          string  // why a measure point was refused, the latest
}

func newNode(host string) *node { return &node{Teams: openmp.NewTeams[*team](Name, host), host: host} }

// Joined begins to follow a process.
func (n *node) Joined(p sdk.Handle, r openmp.Runtime) { n.Join(&team{Team: openmp.NewTeam(p, r)}) }

// Look looks for the symptom after a round of samples, and ends waiting.
func (n *node) Look(h *sdk.Host) {
	n.release(h)
	switch {
	case n.State == openmp.Counting && h.Now().Sub(n.Since) > patience:
		n.blind(h)
		n.FalseAlarm(h)
	case n.Due(h):
		n.begin(h)
	}
}

// begin counts the regions of crowded processes.
func (n *node) begin(h *sdk.Host) {
	var crowded []*team
	for _, t := range n.Sorted() {
		if t.Proposal == "" && !t.GaveUp && t.crowded() {
			crowded = append(crowded, t)
		}
	}
	if len(crowded) == 0 {
		return
	}
	for _, t := range crowded {
		t.watch(h)
	}
	n.regions, n.seconds = 0, 0
	n.Begin(h, crowded)
}

// TakeUp goes on with what the change says of the threads. Of the CPUs that there were then,
// and of who shared them, there is no more than that: as if the members of the proposal had
// shared all of them. Of a change that the Analyzer has taken over from an earlier session not
// even the number is known: there is never room enough to take it back.
func (n *node) TakeUp(h *sdk.Host, p *sdk.Proposal, c sdk.Change) {
	n.Teams.TakeUp(h, p, c)
	t := n.Of(c.Process)
	t.sharers, t.threads, t.before = len(p.Changes), math.MaxUint64, math.Inf(1)
	if threads, known := c.Action.Value().Uint64(); known {
		t.threads, t.before = threads, float64(threads)*float64(t.sharers)
	}
	t.Rest(h)
}

// Refused hears why regions cannot be counted.
func (n *node) Refused(reason string) { n.refusal = reason }

// Count takes the regions of one interval, and reports the objective; when there
// is a baseline, it decides.
func (n *node) Count(h *sdk.Host, a sdk.Aggregates, items []sdk.Aggregate) {
	var regions uint64
	for _, item := range items {
		regions += item.Count
	}
	if !n.Takes(a, regions) {
		return
	}
	n.regions += float64(regions)
	n.seconds += a.Seconds()
	if n.Report(h, regions, a.Seconds(), baseline) {
		n.decide(h)
	}
}

// decide proposes as many threads as there are CPUs for each of the processes, if
// the trouble is still there and worth it.
func (n *node) decide(h *sdk.Host) {
	var all load
	for _, t := range n.Members {
		l, ok := t.load()
		if !ok || !l.crowded() {
			return
		}
		all = all.add(l)
	}
	sharers := all.sharers(len(n.Members))
	all.CPUs *= float64(all.sets(len(n.Members)))
	if n.regions/n.seconds < leastRegions || all.gain() < leastGain {
		return
	}
	n.Propose(h, sdk.Proposal{
		PredictedGain: all.gain(), Confidence: 0.8,
		Reason: fmt.Sprintf("%.0f threads, %.3g for each process, share %.1f CPUs: they wait %.1f s per second for a CPU; %.0f sleeps/s and %.0f other context switches/s for %.0f parallel regions/s",
			all.Threads, all.Threads/float64(len(n.Members)), all.Run, all.Wait, all.Sleeps, all.Yields, n.regions/n.seconds),
	}, func(t *team) sdk.Change {
		t.before, t.sharers, t.freed = t.cpus(), sharers, false
		t.threads = threadsFor(t.before, sharers)
		return sdk.Change{
			Process: t.Handle, Action: sdk.Setting(knob, sdk.Uint(t.threads)), SafePoint: sdk.SafePoint{Timeout: hookPatience},
		}
	})
}

// blind says why trouble is left alone whose cure could not be judged.
func (n *node) blind(h *sdk.Host) {
	if n.refusal != "" && !n.Counted() {
		h.Remark(0, "node %s: there are more OpenMP threads than CPUs, but parallel regions cannot be counted: no change proposed (%s)", n.host, n.refusal)
		n.GiveUp(h)
	}
}

// release takes kept changes back that leave CPUs unused: the CPU set has been
// widened, or processes that shared it have ended. If there are still too many
// threads then, the next look finds it.
func (n *node) release(h *sdk.Host) {
	ids, teams := n.Kept()
	var room []string
	for _, id := range ids {
		if t := teams[id][0]; threadsFor(t.cpus(), min(t.sharers, len(teams[id]))) > t.threads {
			room = append(room, id)
		} else {
			settle(teams[id])
		}
	}
	n.Release(h, room, roomFor, "the processes may use more CPUs than they have threads now")
}

// settle lets teams rest again: the end of a process beside them left no room.
func settle(teams []*team) {
	for _, t := range teams {
		t.freed = t.freed && t.cpus() == 0 // not known yet
	}
}

// Left forgets a process that has ended. Those that were changed with it are looked
// at until it is known whether there is room, also if it ended under judgement.
func (n *node) Left(h *sdk.Host, p sdk.Handle) {
	gone := n.Leave(h, p)
	for _, t := range n.Sorted() {
		if t.Proposal != "" && t.Proposal == gone.Proposal {
			t.freed = true
			h.Want(t.Handle, sdk.AllSamples())
		}
	}
	if n.State == openmp.Counting && len(n.Members) == 0 {
		n.Calm(h)
	}
}
