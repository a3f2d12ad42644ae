// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"time"
)

// maxKin bounds the changes of which is remembered what they brought to a program:
// a job may start any number of programs. Others are tried in each process.
const maxKin = 4096

// kin is the same change in the processes of one program, each with an objective
// of its own: siblings. It is tried in one of them, and the others take over the
// verdict. What is kept in one of these is watched as if it had been tried there,
// so that one that differs from the others gets its own trial. One whose baseline is
// too weak for that is tried itself.
type kin struct {
	// first is the proposal that is being tried, or that was decided about last.
	first *proposal
	// useless counts the trials to the end, since the last gain, that brought none.
	useless int
}

// siblings are the kin of a session. None is ever forgotten: a proposal keeps the key.
type siblings struct {
	kin       map[kinKey]*kin
	processes *processes
}

func newSiblings(processes *processes) *siblings {
	return &siblings{kin: map[kinKey]*kin{}, processes: processes}
}

// kinOf returns what p is a part of; nil if nobody can take over from it: it is
// about several processes or a place in one, or has to be measured, because it took
// a knob from somebody.
func (s *siblings) kinOf(p *proposal) *kin {
	if k := s.kin[p.kin]; k != nil {
		return k
	}
	process := p.changes[0].spec.GetProcess()
	key := kinKey{p.advice, s.processes.program(process)}
	if key.program == "" || p.whole != nil || p.canary != nil || len(p.displaced) > 0 {
		return nil
	}
	if slices.ContainsFunc(p.changes, func(ch *change) bool {
		k := ch.knob()
		return k.process != process || k != k.whole()
	}) {
		return nil
	}
	if s.kin[key] == nil && len(s.kin) < maxKin {
		s.kin[key] = &kin{first: p}
	}
	if s.kin[key] != nil {
		p.kin = key
	}
	return s.kin[key]
}

// awaitTrial notes whether p has to wait for what is tried in a sibling. If it was kept
// there, p follows it. It says why p is refused for what came of that; empty: it is
// not.
func (s *siblings) awaitTrial(p *proposal, now time.Duration) (refused string) {
	p.awaits, p.follows = false, nil
	k := s.kinOf(p)
	if k == nil || k.first == p {
		return ""
	}
	first := k.first
	switch {
	case first.useless() && !p.returned && (now < first.doneAt+cooldown || k.useless >= p.tunlet.maxTries):
		return "tried in another process of the program: " + first.reason
	case first.spec.GetScope() == p.spec.GetScope(): // a node, or the same process: it is tried itself
	case first.state == StateKept:
		p.follows = first
	case !first.final():
		p.awaits, p.aheadUntil = true, now
	default:
		k.first = p
	}
	return ""
}

// noteVerdict notes the verdict on p for those that come later.
func (s *siblings) noteVerdict(p *proposal) {
	k := s.kin[p.kin]
	switch {
	case k == nil:
	case p.useless():
		k.first = p
		k.useless++
	case p.state == StateKept:
		k.useless = 0
	}
}
