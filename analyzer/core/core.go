// SPDX-License-Identifier: Apache-2.0

package core

import (
	"math"
	"slices"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxFinished bounds the finished proposals that are remembered for the report.
const maxFinished = 1000

// Core is the state machine. The zero value is not usable; see New.
type Core struct {
	cfg       Config
	now       time.Duration
	out       []Command
	finishing bool

	tunlets    tunlets
	processes  *processes
	owners     owners
	restraints *restraints
	known      knowledge
	siblings   *siblings

	proposals map[name]*proposal // by the tunlets' ids
	active    []*proposal        // not final, in the order proposed
	finished  []*proposal
	forgot    int
	refused   map[string]*refusal
	changes   map[string]*change
	requests  map[string]*proposal

	lastChange, lastRequest int
	lastProposal            uint64
	touched                 []*proposal // not as they were at the last call of Changed
	touchedRefusals         []*refusal
	dropped                 []uint64 // numbers of proposals that were forgotten since
}

// New returns a core with the given rules.
func New(cfg Config) *Core {
	def(&cfg.queueWait, queueWait)
	_, window := baselineSize(cfg.Apart)
	processes := newProcesses(window)
	return &Core{
		cfg:        cfg,
		tunlets:    tunlets{},
		processes:  processes,
		owners:     newOwners(),
		restraints: newRestraints(),
		known:      knowledge{},
		siblings:   &siblings{kin: map[kinKey]*kin{}, processes: processes},
		proposals:  map[name]*proposal{},
		refused:    map[string]*refusal{},
		changes:    map[string]*change{},
		requests:   map[string]*proposal{},
	}
}

// Step tells the core what happened and when, and returns what is to be done.
// Time never runs backwards: an earlier time than the last one counts as that.
func (c *Core) Step(at time.Duration, ev Event) []Command {
	c.now = max(c.now, at)
	c.out = nil
	switch ev := ev.(type) {
	case TunletReady:
		c.tunletReady(ev.Info)
	case TunletGone:
		c.tunletGone(ev)
	case ProcessStarted:
		c.processes.start(ev)
	case ProcessEnded:
		c.processEnded(ev.Process)
	case Propose:
		c.propose(ev.Tunlet, ev.Proposal)
	case Withdraw:
		c.withdraw(ev)
	case Sample:
		c.sample(ev)
	case Result:
		c.result(ev)
	case RequestDone:
		c.requestDone(ev.Request)
	case Verdict:
		c.verdict(ev)
	case Lapsed:
		c.lapsed(ev)
	case Knowledge:
		c.known.learn(ev.Known)
	case Adopt:
		c.adopt(ev.Held)
	case Tick:
	case Finish:
		c.cfg.Keep = c.cfg.Keep || ev.Keep
		c.finish()
	}
	c.advance()
	return c.out
}

// Busy reports whether a request to the controllers is unanswered.
func (c *Core) Busy() bool { return len(c.requests) > 0 }

// Deciding reports whether a proposal waits for samples: its own baseline, or
// those that judge it.
func (c *Core) Deciding() bool {
	return slices.ContainsFunc(c.active, func(p *proposal) bool {
		return p.state == StateWaiting || p.experiment()
	})
}

// advance does what time and order allow.
func (c *Core) advance() {
	for _, p := range slices.Clone(c.active) {
		switch p.state {
		case StateWaiting:
			c.tryApply(p)
		case StateApplying:
			c.checkApply(p)
		case StateJudging:
			if c.now >= p.deadline {
				c.look(p, true)
			}
		case StateAsking:
			if c.now >= p.deadline {
				c.resolve(p, attunev1.Verdict_VERDICT_UNSPECIFIED, "no verdict from the tunlet in time")
			}
		case StateTurning:
			c.checkTurning(p)
		case StateKept:
			c.checkGrace(p)
		case StateUndoing:
			c.checkUndo(p)
		}
	}
}

// tunletReady makes a tunlet known, or alive again.
func (c *Core) tunletReady(info *attunev1.DescribeResponse) {
	t := c.tunlets.ready(info)
	for _, p := range c.active {
		if p.tunlet == t && p.state == StateKept {
			p.watchFrom = c.now
			c.notify(p, "kept before the tunlet's restart")
		}
	}
}

// tunletGone takes back what a dead tunlet left unverified.
func (c *Core) tunletGone(ev TunletGone) {
	t := c.tunlets[ev.Tunlet]
	if t == nil {
		return
	}
	t.alive, t.goneAt = false, c.now
	for _, p := range slices.Clone(c.active) {
		if p.tunlet == t && (p.state != StateKept || ev.Final) {
			c.takeBack(p, "tunlet gone: "+ev.Reason)
		}
	}
}

// checkGrace undoes a kept change whose tunlet did not come back.
func (c *Core) checkGrace(p *proposal) {
	if p.tunlet.missing(c.now) {
		c.takeBack(p, "tunlet gone and not restarted in time")
	}
}

// processEnded ends the changes of a process with it, and forgets it.
func (c *Core) processEnded(handle uint64) {
	if !c.processes.end(handle) {
		return
	}
	c.restraints.end(handle)
	for _, p := range slices.Clone(c.active) {
		touched := false
		for _, ch := range p.changes {
			if ch.spec.GetProcess() == handle {
				touched = true
				ch.outcome = attunev1.Outcome_OUTCOME_GONE
				c.owners.free(ch.knob())
			}
		}
		if touched {
			c.touch(p)
		}
		if touched && c.processes.outlived(p) {
			c.processesGone(p)
		}
	}
}

// processesGone ends a proposal with its last process.
func (c *Core) processesGone(p *proposal) {
	if p.again() {
		p.state = StateKept
		p.breakOff()
	}
	switch p.state {
	case StateKept:
		c.close(p)
	case StateWaiting:
		c.conclude(p, StateRefused, "the process ended before the change was applied")
	case StateUndoing:
		c.conclude(p, p.undoTo, p.undoReason)
	default:
		c.conclude(p, StateEnded, "the process ended before it could be judged")
	}
}

// sample takes one value of an objective.
func (c *Core) sample(ev Sample) {
	t := c.tunlets[ev.Tunlet]
	if t == nil || math.IsNaN(ev.Value) || math.IsInf(ev.Value, 0) {
		return
	}
	t.scopes.get(ev.Scope).add(ev.At, ev.Value)
	for _, p := range slices.Clone(c.active) {
		if p.tunlet != t || p.spec.GetScope() != ev.Scope {
			continue
		}
		switch p.state {
		case StateJudging:
			// A first comparison that is overdue is ended in its order, see advance.
			c.look(p, p.turns != nil && c.now >= p.deadline)
		case StateKept:
			c.watch(p)
		}
	}
}

// finish ends the session.
func (c *Core) finish() {
	c.finishing = true
	for _, p := range slices.Clone(c.active) {
		c.takeBack(p, "the session ended")
	}
}

// emit appends a command.
func (c *Core) emit(cmd Command) { c.out = append(c.out, cmd) }

// record appends an entry for the audit log.
func (c *Core) record(kind string, p *proposal, reason string) {
	c.emit(Record{
		At: c.now, Kind: kind, Reason: reason, Proposal: c.touch(p).view(),
	})
}

// notify tells the tunlet of p what became of it.
func (c *Core) notify(p *proposal, reason string) {
	if !p.tunlet.alive || p.whole != nil {
		return
	}
	req := &attunev1.ProposalChangedRequest{
		ProposalId: p.spec.GetId(), State: p.state.proto(), Reason: reason,
	}
	for _, ch := range p.changes {
		if ch.result != nil {
			req.Results = append(req.Results, ch.result)
		}
	}
	c.emit(Notify{Tunlet: p.tunlet.name, Request: req})
}
