// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"slices"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// joinWait is how long a node with trouble waits for the other nodes of the
// job that may have it too, and only later show it. A change of one alone does
// not help while the ranks of another still spin and hold everybody up: it
// would be judged as no gain.
// Ranks that share CPUs may take seconds until their calls are counted.
const joinWait = 5 * time.Second

// decide proposes one change for all nodes that have the trouble, as soon as
// one of those just heard of has it and no other may follow shortly. A single
// node waits for nobody.
func (t *Tunlet) decide(h *sdk.Host, heard []*node) {
	var first *node
	for _, n := range heard {
		if n.due(h) && first == nil {
			first = n
		}
	}
	if first == nil || t.judging() {
		return
	}
	nodes := []*node{first}
	if !t.apart {
		nodes = t.together(h, first)
	}
	if len(nodes) > 0 {
		t.propose(h, nodes)
	}
}

// together lists the nodes to be changed with the first one, or none while
// there is something to wait for: another node, or a baseline of them all.
func (t *Tunlet) together(h *sdk.Host, first *node) []*node {
	wait := h.Now().Sub(first.dueAt) < joinWait
	nodes := []*node{first}
	for _, n := range t.sorted() {
		switch {
		case n == first:
		case n.due(h), !wait && n.suffers(h):
			nodes = append(nodes, n)
		case wait && n.mayFollow(h):
			return nil
		}
	}
	if wait && len(t.nodes) > 1 && t.incomplete() {
		return nil
	}
	if wait && len(nodes) > 1 && !t.jointly(nodes) {
		return nil
	}
	return nodes
}

// incomplete says that the numbers of the job's ranks have a gap: on a crowded
// node a process may be heard of later than the others. What is missing at the
// end of the numbers cannot be told.
func (t *Tunlet) incomplete() bool {
	numbers := map[int]bool{}
	greatest := -1
	for handle, n := range t.ranks {
		if number := n.ranks[handle].number; number >= 0 {
			numbers[number] = true
			greatest = max(greatest, number)
		}
	}
	return len(numbers) <= greatest
}

// jointly says that there is a baseline of nodes together, and that all their
// calls are counted.
func (t *Tunlet) jointly(nodes []*node) bool {
	return t.joint != nil && t.joint.values >= baseline && t.joint.covers(nodes) &&
		!slices.ContainsFunc(nodes, (*node).uncounted)
}

// judging says that a proposal is on its way: in one job, what is changed on
// one node is felt on the others.
func (t *Tunlet) judging() bool {
	for _, n := range t.nodes {
		if n.judging() {
			return true
		}
	}
	return false
}

// report takes one interval of a node, and reports the objective of the node
// and of the nodes of which it is one.
func (t *Tunlet) report(h *sdk.Host, n *node, calls uint64, seconds float64) {
	n.count(calls, seconds)
	if n.intervals == 0 {
		return // what came before the first call, in MPI_Init, is no baseline
	}
	h.Objective(n.scope(), n.latest())
	t.looks.reported(n.scope())
	t.series = slices.DeleteFunc(t.series, func(s *series) bool {
		if !s.broken(n) {
			return false
		}
		s.reset() // what is judged by it may go on
		if s == t.joint {
			t.joint = nil
		}
		return len(s.judges) == 0
	})
	if !slices.Contains(t.series, t.joint) || t.joint.shares[n] == nil {
		t.join()
	}
	for _, s := range t.series {
		if value, ok := s.add(n, calls, seconds); ok {
			h.Objective(s.scope, value)
			t.looks.reported(s.scope)
		}
	}
}

// join makes the series of all nodes whose calls are counted, if there are
// several, and forgets those that nothing is judged by.
func (t *Tunlet) join() {
	t.series = slices.DeleteFunc(t.series, func(s *series) bool { return len(s.judges) == 0 })
	t.joint = nil
	var counted []*node
	for _, n := range t.sorted() {
		if n.intervals > 0 {
			counted = append(counted, n)
		}
	}
	if len(counted) < 2 {
		return
	}
	scope := scopeOf(counted)
	for _, s := range t.series {
		if s.scope == scope {
			t.joint = s
			return
		}
	}
	t.joint = newSeries(counted)
	t.series = append(t.series, t.joint)
}

// dropNode forgets a node without ranks, and the series that would wait for it for ever.
// The next job there is another node, of series of its own.
func (t *Tunlet) dropNode(n *node) {
	delete(t.nodes, n.host)
	t.series = slices.DeleteFunc(t.series, func(s *series) bool { return s.shares[n] != nil })
	if !slices.Contains(t.series, t.joint) {
		t.joint = nil
	}
}

// dropJudged has no series judge a proposal any more, unless a node still has it.
func (t *Tunlet) dropJudged(id string) {
	for _, n := range t.nodes {
		if _, has := n.proposals[id]; has {
			return
		}
	}
	for _, s := range t.series {
		delete(s.judges, id)
	}
}

// settled follows a proposal that came to its end. One that brought nothing
// has all nodes pause, so that they try again together; where it could not be
// made on all of them, each is tried for itself from then on.
func (t *Tunlet) settled(h *sdk.Host, c sdk.ProposalChange, nodes int) {
	if c.State == sdk.Kept {
		return
	}
	t.dropJudged(c.Proposal)
	t.apart = t.apart || nodes > 1 && c.State == sdk.Failed
	if nodes == 0 || t.apart {
		return
	}
	until := h.Now().Add(sdk.RetryPause)
	for _, n := range t.nodes {
		if n.until.Before(until) {
			n.until = until
		}
	}
}
