// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"fmt"
	"maps"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// due says that the trouble is there, known for long enough, and there is a
// baseline to judge a change by. Then it is in n.trouble.
func (n *node) due(h *sdk.Host) bool {
	if !n.diagnose(h) {
		n.dueAt = time.Time{}
		return false
	}
	if n.dueAt.IsZero() {
		n.dueAt = h.Now()
	}
	return true
}

// mayPropose says that the trouble is there for long enough, and that there is
// no reason not to try.
func (n *node) mayPropose(now time.Time) bool {
	return !n.crowdedAt.IsZero() && !now.Before(n.until) && now.Sub(n.crowdedAt) >= n.hold && !n.judging() && n.failures < maxFailures && !n.singles()
}

func (n *node) diagnose(h *sdk.Host) bool {
	now := h.Now()
	if !n.mayPropose(now) {
		return false
	}
	fresh := n.tunable(h)
	if len(fresh) == 0 {
		return false
	}
	for _, r := range fresh {
		r.watch(h)
	}
	if n.intervals < baseline || !n.ready(h, fresh) {
		n.blind(h, fresh)
		return false
	}
	c, _ := n.crowd()
	blocked := c.blocked(n.mean() / float64(len(n.ranks)))
	if blocked < leastBlocked {
		if n.dear {
			n.until = now.Add(sdk.RetryPause)
			n.shed(h)
		}
		return false
	}
	n.trouble = trouble{fresh, c, blocked}
	return true
}

// suffers says that the trouble is there, but that it is not known how much it
// costs, since not all calls are counted for the time being. Such a node can
// hold up the others, and be changed with one whose calls tell. Then its ranks
// are in n.trouble.
func (n *node) suffers(h *sdk.Host) bool {
	if !n.mayPropose(h.Now()) || n.intervals >= baseline && !n.uncounted() {
		return false
	}
	fresh := n.tunable(h)
	for _, r := range fresh {
		if r.hits == 0 {
			return false // in MPI_Init, or it does not communicate
		}
	}
	c, _ := n.crowd()
	n.trouble = trouble{fresh, c, 0}
	return len(fresh) > 0
}

// uncounted says that the overhead budget has the points of a rank off.
func (n *node) uncounted() bool {
	for _, r := range n.ranks {
		if r.off {
			return true
		}
	}
	return false
}

// mayFollow says that a change may soon be due, though it is not yet: there are
// more ranks than CPUs, some of them want a CPU all the time or are not known
// yet, and there is one to change.
func (n *node) mayFollow(h *sdk.Host) bool {
	const rounding = 1e-9 // present is a sum of fractions
	if n.present() <= 1+rounding || h.Now().Before(n.until) || n.failures >= maxFailures {
		return false
	}
	if c, known := n.crowd(); known && c.ranks == 0 {
		return false
	}
	for _, r := range n.ranks {
		if r.library.hasKnob() && r.proposal == "" {
			return true
		}
	}
	return false
}

// blind says why trouble is left alone whose cure could not be judged.
func (n *node) blind(h *sdk.Host, ranks []*rank) {
	for _, r := range ranks {
		if r.placed || r.watchedFor(h.Now()) < answer {
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
			n.remark(h, "MPICH ranks spin with more ranks than CPUs; MPICH has no variable that makes them yield, and only over UCX is there a function that can: no knob here")
		case r.library == otherMPI:
			n.remark(h, "ranks of an MPI library that is neither Open MPI nor MPICH spin with more ranks than CPUs: no knob in this version")
		case r.proposal == "":
			fresh = append(fresh, r)
		}
	}
	return fresh
}

// ready says that every rank to be changed has left MPI_Init, or has had time
// enough to, and that no rank's calls are unknown: nothing could be judged.
func (n *node) ready(h *sdk.Host, fresh []*rank) bool {
	if n.uncounted() {
		return false
	}
	for _, r := range fresh {
		if r.hits == 0 && r.watchedFor(h.Now()) < joinPatience {
			return false
		}
	}
	return true
}

// propose changes all the ranks that are in trouble on the given nodes, at once.
// They are judged together, or by the first node where the calls of another are
// not known. The ranks of a job go as fast as the slowest, so the node where
// calls block most tells the gain.
func (t *Tunlet) propose(h *sdk.Host, nodes []*node) {
	first := nodes[0]
	t.sequence++
	id := fmt.Sprintf("%s-%s-%d", Name, first.host, t.sequence)
	scope := first.scope()
	if len(nodes) > 1 && t.jointly(nodes) {
		scope = t.joint.scope
		t.joint.judges[id] = true
	}
	p := sdk.Proposal{ID: id, Scope: scope, Reason: reasonFor(nodes), Confidence: 0.9}
	for _, n := range nodes {
		n.proposals[id] = inForce{joint: len(nodes) > 1, scope: scope}
		n.dueAt = time.Time{}
		for _, r := range n.trouble.ranks {
			r.proposal = id
			p.Changes = append(p.Changes, r.library.change(r.handle))
		}
		p.PredictedGain = max(p.PredictedGain, gain(n.trouble.blocked))
	}
	h.Propose(p)
}

// reasonFor tells people the figures, of all nodes together.
func reasonFor(nodes []*node) string {
	var c crowd
	var calls float64
	for _, n := range nodes {
		c.join(n.trouble.crowd)
		calls += n.mean()
	}
	where := ""
	if len(nodes) > 1 {
		where = fmt.Sprintf(" on %d nodes", len(nodes))
	}
	return fmt.Sprintf("%d busy ranks%s share %.1f CPUs: %.0f %% of their time waiting for a CPU, %.0f context switches/s each; %.0f MPI calls/s",
		c.ranks, where, c.run, 100*c.wait/(c.run+c.wait), c.switches/float64(c.ranks), calls)
}

// takeUp goes on where the tunlet was when it had kept a proposal, before it was started again.
func (t *Tunlet) takeUp(h *sdk.Host, c sdk.ProposalChange) {
	p := c.Earlier
	t.sequence = max(t.sequence, p.Number())
	nodes := map[*node]bool{}
	for _, change := range p.Changes {
		if n := t.ranks[change.Process]; n != nil {
			n.ranks[change.Process].proposal = p.ID
			nodes[n] = true
		}
	}
	together := inOrder(maps.Keys(nodes))
	for _, n := range together {
		n.proposals[p.ID] = inForce{judged: true, joint: len(nodes) > 1, scope: p.Scope}
		n.attend(h)
	}
	if len(nodes) > 1 && scopeOf(together) == p.Scope {
		s := newSeries(together)
		s.judges[p.ID] = true
		t.series = append(t.series, s)
	}
	l := t.newLook(p.ID, p.Scope)
	if l.TakeUp(c, p.Scope) {
		t.looks[p.ID] = l
	}
}
