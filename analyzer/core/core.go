// SPDX-License-Identifier: Apache-2.0

package core

import (
	"math"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Core is the state machine. The zero value is not usable; see New.
type Core struct {
	*transcript
	cfg       Config
	finishing bool

	tunlets    tunlets
	processes  *processes
	owners     owners
	restraints *restraints
	known      knowledge
	siblings   *siblings

	line     *line
	archive  *archive
	requests *requests
	refusals *refusals
}

// New returns a core with the given rules.
func New(cfg Config) *Core {
	def(&cfg.queueWait, queueWait)
	_, window := baselineSize(cfg.Apart)
	processes := newProcesses(window)
	known, log := knowledge{}, &transcript{}
	return &Core{
		transcript: log,
		cfg:        cfg,
		tunlets:    tunlets{},
		processes:  processes,
		owners:     newOwners(),
		restraints: newRestraints(),
		known:      known,
		siblings:   &siblings{kin: map[kinKey]*kin{}, processes: processes},
		line:       &line{known: known},
		archive:    newArchive(cfg.IDPrefix, &log.views),
		requests:   &requests{transcript: log, unanswered: map[string]*proposal{}},
		refusals:   &refusals{transcript: log, said: map[string]*refusal{}},
	}
}

// Step tells the core what happened and when, and returns what is to be done.
// Time never runs backwards: an earlier time than the last one counts as that.
func (c *Core) Step(at time.Duration, ev Event) []Command {
	c.transcript.step(at)
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
func (c *Core) Busy() bool { return c.requests.busy() }

// Deciding reports whether a proposal waits for samples: its own baseline, or
// those that judge it.
func (c *Core) Deciding() bool {
	return c.line.deciding()
}

// advance does what time and order allow.
func (c *Core) advance() {
	for _, p := range c.line.all() {
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
	for _, p := range c.line.active {
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
	for _, p := range c.line.all() {
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
	for _, p := range c.line.all() {
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
	for _, p := range c.line.all() {
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
	for _, p := range c.line.all() {
		c.takeBack(p, "the session ended")
	}
}

// Changed returns the proposals and refusals that may not be as they were at the
// last call, and the numbers of those that have been forgotten since.
func (c *Core) Changed() (changed []ProposalView, forgotten []uint64) { return c.changed() }

// Forgotten returns how many proposals and refusals there was no room for.
func (c *Core) Forgotten() int { return c.lost }
