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

// Sample takes a sample of a process, and where its threads may run.
func (n node) Sample(h *sdk.Host, s sdk.Sample) {
	n.Teams.Sample(h, s)
	if threads := s.Details.Threads; threads != nil {
		n.Of(s.Process).settle(h, threads)
	}
}

// active lists the teams at work.
func (n node) active() (teams []*team) {
	for _, t := range n.Sorted() {
		if l, ok := t.load(); ok && l.active() {
			teams = append(teams, t)
		}
	}
	return teams
}

// Look looks for the symptom, and for room, after a round of samples. Where the teams may
// run is read anew when it is there: somebody may have bound them meanwhile.
func (n node) Look(h *sdk.Host) {
	active := n.active()
	n.release(h, active)
	switch {
	case n.State == openmp.Counting && h.Now().Sub(n.Since) > patience:
		n.FalseAlarm(h)
	case n.Due(h) && together(active).full():
		n.begin(h, active)
	}
}

// begin counts the regions of all teams at work, if there are some that spin and can be
// changed.
func (n node) begin(h *sdk.Host, active []*team) {
	spinning := slices.DeleteFunc(slices.Clone(active), func(t *team) bool {
		l, _ := t.load()
		return t.Proposal != "" || t.GaveUp || !l.spins()
	})
	if len(spinning) == 0 {
		return
	}
	for _, t := range active {
		t.watch(h)
	}
	n.Begin(h, spinning)
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
	watched := slices.DeleteFunc(n.Sorted(), func(t *team) bool { return !t.Watched() })
	near := crowded(crowds(watched))
	n.Members = slices.DeleteFunc(n.Members, func(t *team) bool { return !slices.Contains(near, t) })
	if len(n.Members) == 0 { // each has CPUs of its own, which somebody else wants
		n.FalseAlarm(h)
		return
	}
	var before, after, wait float64
	for _, t := range watched {
		l, ok := t.load()
		if !ok {
			continue
		}
		before += t.regions.rate()
		wait += l.Wait
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
func (n node) release(h *sdk.Host, active []*team) {
	room, _ := n.Kept()
	if len(room) > 0 {
		for _, t := range active {
			t.lookAt(h)
		}
	}
	if len(crowded(crowds(active))) > 0 {
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
