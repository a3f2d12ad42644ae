// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"

	"google.golang.org/protobuf/proto"
)

// leastSiblings is how many processes a proposal has at least for one of them to
// be tried first.
const leastSiblings = 4

// canaryProcess returns the process in which p is to be tried before the others;
// 0: all are changed at one time. Each must have an objective of its own, and the
// one that is chosen has been measured.
func (c *Core) canaryProcess(p *proposal) uint64 {
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
		if scope := p.spec.GetProcessScopes()[process]; len(p.tunlet.scopes.get(scope).points) > 0 {
			return process
		}
	}
	return 0
}

// sendAhead makes a proposal of its own of p's changes in one process, which p
// waits for. The tunlet hears of the whole only.
func (c *Core) sendAhead(p *proposal, process uint64) {
	spec := proto.CloneOf(p.spec)
	spec.Id, spec.Scope, spec.Changes = p.spec.GetId()+"/canary", p.spec.GetProcessScopes()[process], nil
	canary := &proposal{tunlet: p.tunlet, spec: spec, advice: p.advice, whole: p, proposedAt: c.now}
	p.canary = canary
	for _, ch := range p.changes {
		if ch.spec.GetProcess() != process {
			continue
		}
		ch.proposal = canary
		canary.changes = append(canary.changes, ch)
		spec.Changes = append(spec.Changes, ch.spec)
		c.owners.take(ch.knob(), canary)
	}
	c.touch(p).changes = slices.DeleteFunc(p.changes, func(ch *change) bool { return ch.proposal == canary })
	c.line.enqueue(canary)
	c.record("proposed", canary, "tried in one process first")
}

// afterCanary lets what waits for a canary follow its fate. Where its process
// ended before the verdict, the others are tried without it.
func (c *Core) afterCanary(canary *proposal, to State, reason string) {
	p := canary.whole
	if p.state != StateWaiting || to == StateEnded {
		return
	}
	p.judgement, p.inconclusive = canary.judgement, canary.inconclusive || canary.blameless
	c.conclude(p, to, "tried in one process: "+reason)
}

// recallCanary takes the canary of a proposal back that did not stay.
func (c *Core) recallCanary(p *proposal, reason string) {
	if p.canary != nil && p.canary.inPlay() {
		c.takeBack(p.canary, "the other processes: "+reason)
	}
}
