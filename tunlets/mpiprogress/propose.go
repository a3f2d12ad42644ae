// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"fmt"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// decide proposes when the trouble is there, known for long enough, and there
// is a baseline to judge by.
func (n *node) decide(h *sdk.Host) {
	now := h.Now()
	if n.crowdedAt.IsZero() || now.Before(n.until) || now.Sub(n.crowdedAt) < n.hold || n.judging() || n.failures >= maxFailures {
		return
	}
	fresh := n.tunable(h)
	if len(fresh) == 0 {
		return
	}
	for _, r := range fresh {
		r.watch(h)
	}
	if n.progress < baseline || !n.ready(h, fresh) {
		n.blind(h, fresh)
		return
	}
	c, _ := n.crowd()
	if blocked := c.blocked(n.mean() / float64(len(n.ranks))); blocked >= leastBlocked {
		n.propose(h, fresh, c, blocked)
	} else if n.dear {
		n.until = now.Add(sdk.RetryPause)
		n.shed(h)
	}
}

// blind says why trouble is left alone whose cure could not be judged.
func (n *node) blind(h *sdk.Host, ranks []*rank) {
	for _, r := range ranks {
		if r.placed || h.Now().Sub(r.since) < answer {
			return
		}
	}
	n.remark(h, "MPI ranks spin with more ranks than CPUs, but their calls cannot be counted: no change proposed (%s)", n.refusal)
}

// tunable lists the ranks that can be changed and are not yet. It says why
// the others cannot.
func (n *node) tunable(h *sdk.Host) (fresh []*rank) {
	for _, r := range n.sorted() {
		switch {
		case r.library == mpich:
			n.remark(h, "MPICH ranks spin with more ranks than CPUs; MPICH has no variable that makes them yield: no knob in this version")
		case r.library == otherMPI:
			n.remark(h, "ranks of an MPI library that is not Open MPI spin with more ranks than CPUs: no knob in this version")
		case r.proposal == "":
			fresh = append(fresh, r)
		}
	}
	return fresh
}

// ready says that every rank to be changed has left MPI_Init, or has had time
// enough to.
func (n *node) ready(h *sdk.Host, fresh []*rank) bool {
	for _, r := range fresh {
		if r.hits == 0 && h.Now().Sub(r.since) < joinPatience {
			return false
		}
	}
	return true
}

// propose changes all the given ranks at once.
func (n *node) propose(h *sdk.Host, ranks []*rank, c crowd, blocked float64) {
	n.sequence++
	id := fmt.Sprintf("%s-%s-%d", Name, n.host, n.sequence)
	changes := make([]sdk.Change, 0, len(ranks))
	for _, r := range ranks {
		r.proposal = id
		changes = append(changes, sdk.Change{
			Knob: knob, Process: r.handle,
			Action: sdk.SetVariableFrom("libopen-pal.so*", "opal_progress_yield_when_idle", 1,
				sdk.Bool(false), sdk.Bool(true)),
		})
	}
	n.proposals[id] = false
	h.Propose(sdk.Proposal{
		ID: id, Changes: changes, Scope: n.scope(),
		Reason: fmt.Sprintf("%d busy ranks share %.1f CPUs: %.0f %% of their time waiting for a CPU, %.0f context switches/s each; %.0f MPI calls/s",
			c.ranks, c.run, 100*c.wait/(c.run+c.wait), c.switches/float64(c.ranks), n.mean()),
		PredictedGain: gain(blocked), Confidence: 0.9,
	})
}
