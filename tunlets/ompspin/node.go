// SPDX-License-Identifier: Apache-2.0

package ompspin

import (
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/openmp"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// baseline is how many values of the objective there must be before a
	// proposal: a team that spins has seconds of different speeds.
	baseline = 10
	// patience is how long regions are counted without a confirmation.
	patience = 4 * time.Second
	// roomFor is how long there must be room before teams spin again.
	roomFor = 2 * time.Second
)

// knob is the name of what is changed.
const knob = "gomp.spin_count"

// node knows the teams of one node.
type node struct{ *openmp.Teams[*team] }

func newNode(host string) node { return node{openmp.NewTeams[*team](Name, host)} }

// Joined begins to follow a process.
func (n node) Joined(p sdk.Handle, r openmp.Runtime) { n.Join(&team{Team: openmp.NewTeam(p, r)}) }

// crowd lists the teams at work, and those of them that spin and can be changed;
// full says that there are several and not CPUs enough for all their threads.
func (n node) crowd() (active, spinning []*team, full bool) {
	var threads, cpus float64
	for _, t := range n.Sorted() {
		l, ok := t.load()
		if !ok || !l.active() {
			continue
		}
		active = append(active, t)
		threads += l.threads
		cpus = max(cpus, l.cpus)
		if t.Proposal == "" && !t.GaveUp && l.spins() {
			spinning = append(spinning, t)
		}
	}
	return active, spinning, len(active) >= 2 && threads > cpus
}

// Look looks for the symptom, and for room, after a round of samples.
func (n node) Look(h *sdk.Host) {
	active, spinning, full := n.crowd()
	n.release(h, full)
	switch {
	case n.State == openmp.Counting && h.Now().Sub(n.Since) > patience:
		n.FalseAlarm(h)
	case n.Due(h) && full && len(spinning) > 0:
		for _, t := range active {
			t.watch(h)
		}
		n.Begin(h, spinning)
	}
}

// Refused changes nothing: without figures there is no proposal.
func (node) Refused(string) {}

// Count takes the regions of one interval, and reports the objective; when there
// is a baseline, it decides.
func (n node) Count(h *sdk.Host, a sdk.Aggregates, items []sdk.Aggregate) {
	var sum uint64
	for _, item := range items {
		if counts(item) {
			sum += item.Count
		}
	}
	if !n.Takes(a, sum) {
		return
	}
	for _, item := range items {
		if r := &n.Of(item.Process).regions; counts(item) {
			r.add(item.Count, a.Seconds())
		} else {
			r.time(item)
		}
	}
	if n.Report(h, sum, a.Seconds(), baseline) {
		n.decide(h)
	}
}

// counts tells an aggregate of the point that counts from that of durations.
func counts(a sdk.Aggregate) bool { return a.Point == openmp.PointID(a.Process) }

// decide proposes if the trouble is still there and worth it: for all teams
// together, since those that are not changed get the CPUs of those that are.
func (n node) decide(h *sdk.Host) {
	var before, after, wait float64
	for _, t := range n.Sorted() {
		l, ok := t.load()
		if !ok || !t.Watched() {
			continue
		}
		before += t.regions.rate()
		wait += l.wait
		if slices.Contains(n.Members, t) {
			after += t.regions.predicted(l)
		} else {
			after += t.regions.rate()
		}
	}
	if before <= 0 || after < leastGain*before {
		return
	}
	n.Propose(h, sdk.Proposal{
		PredictedGain: after / before, Confidence: 0.6,
		Reason: fmt.Sprintf("%d OpenMP teams spin against each other: their threads wait %.1f s per second for a CPU without ever giving one back; %.0f parallel regions/s",
			len(n.Members), wait, before),
	}, func(t *team) sdk.Change {
		return sdk.Change{Process: t.Handle, Action: sdk.Setting(knob, sdk.Uint(0))} // who waits sleeps at once
	})
	for _, t := range n.Sorted() {
		t.CountOnly(h)
	}
}

// release has teams spin again when there has been room for all for long enough.
func (n node) release(h *sdk.Host, full bool) {
	room, _ := n.Kept()
	if full {
		room = nil
	}
	n.Release(h, room, roomFor, "there is a CPU for each thread again: who spins goes on sooner")
}

// Left forgets a process that has ended.
func (n node) Left(h *sdk.Host, p sdk.Handle) {
	n.Leave(h, p)
	if n.State == openmp.Counting {
		n.Calm(h) // what is left may fit
	}
}
