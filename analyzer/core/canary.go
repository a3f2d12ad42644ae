// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// leastSiblings is how many processes a proposal has at least for one of them to
// be tried first.
const leastSiblings = 4

// canaries are tried in one process before the rest of their proposals, which follow
// them.
type canaries struct {
	*transcript
	shared bool // one objective judges all: that of one process could not be told
	owners *owners
	line   *line
	ends   *endings
	undoer *undoer
}

// choose returns the process in which p is to be tried before the others;
// 0: all are changed at one time. Each must have an objective of its own, and the
// one that is chosen has been measured.
func (c *canaries) choose(p *proposal) uint64 {
	if c.shared {
		return 0
	}
	var siblings []uint64
	for _, ch := range p.changes {
		process := ch.spec.GetProcess()
		if p.spec.GetProcessScopes()[process] == "" {
			return 0
		}
		if !slices.Contains(siblings, process) {
			siblings = append(siblings, process)
		}
	}
	if len(siblings) < leastSiblings {
		return 0
	}
	for _, process := range siblings {
		if scope := p.spec.GetProcessScopes()[process]; !p.tunlet.scopes.Of(scope).Empty() {
			return process
		}
	}
	return 0
}

// sendAhead makes a proposal of its own of p's changes in one process, which p
// waits for. The tunlet hears of the whole only.
func (c *canaries) sendAhead(p *proposal, process uint64) {
	spec := proto.CloneOf(p.spec)
	spec.Id, spec.Scope = p.spec.GetId()+"/canary", p.spec.GetProcessScopes()[process]
	canary := &proposal{tunlet: p.tunlet, spec: spec, advice: p.advice, whole: p, proposedAt: c.now}
	p.canary = canary
	var part changes
	for _, ch := range p.changes {
		if ch.spec.GetProcess() == process {
			part = append(part, ch)
		}
	}
	c.touch(p).cedeChanges(canary, part)
	c.owners.assign(canary)
	c.line.enqueue(canary)
	c.record("proposed", canary, "tried in one process first")
}

// followCanary lets what waits for a canary follow its fate. Where its process
// ended before the verdict, the others are tried without it. Where of a kept one only
// the canary was left, its tunlet hears that nothing is any more.
func (c *canaries) followCanary(canary *proposal, to State, reason string) {
	p := canary.whole
	if p.state == StateKept && len(p.changes.inForce()) == 0 {
		c.notifyState(p, to.proto(), reason)
	}
	if p.state != StateWaiting || to == StateEnded {
		return
	}
	p.trial.Judgement, p.inconclusive = canary.trial.Judgement, canary.inconclusive || canary.blameless
	c.ends.conclude(p, to, "tried in one process: "+reason)
}

// recallCanary takes the canary of a proposal back that did not stay.
func (c *canaries) recallCanary(p *proposal, reason string) {
	if p.canary != nil && p.canary.inPlay() {
		c.undoer.takeBack(p.canary, cause{text: "the other processes: " + reason})
	}
}
