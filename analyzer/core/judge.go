// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"math"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// startJudging fixes the baseline of a proposal that is in force, and begins to
// collect. first is when the first of its changes took effect; samples that
// ended before it came in while the request was under way still count.
func (c *Core) startJudging(p *proposal, first time.Duration) {
	p.state = StateJudging
	p.before = c.baseline(p, first)
	p.from = p.appliedAt + settleTime
	p.hold = minSamples
	p.deadline = c.now + judgeTimeout
	reason := ""
	switch n := len(p.before); {
	case n == 0:
		reason = "no baseline"
	case n < minSamples:
		reason = fmt.Sprintf("weak baseline of %d samples", n)
	}
	c.record("applied", p, reason)
	c.notify(p, reason)
}

// judge looks at the samples after the change: at each sample once there are
// enough, with a stricter level than at the last look.
func (c *Core) judge(p *proposal) {
	if p.turns != nil {
		c.inTurn(p)
		return
	}
	samples := c.latest(p)
	before, after := alike(p.before, samples)
	if len(after) < p.hold {
		return
	}
	last := len(after) >= maxSamples+p.waits*minSamples && !c.cfg.Apart
	c.look(p, before, after, last, samples)
}

// latest returns the samples after the change that it is judged by. Of an
// application of which others tune parts at the same time, perhaps later, the
// newest ones say what has come of it.
func (c *Core) latest(p *proposal) []point {
	samples := p.history().since(p.from)
	if most := 2 * maxSamples; c.cfg.Apart && len(samples) > most {
		return samples[len(samples)-most:]
	}
	return samples
}

// checkJudging ends a judgement that gets no samples.
func (c *Core) checkJudging(p *proposal) {
	if c.now >= p.deadline && p.turns != nil {
		c.inTurn(p)
		return
	}
	if c.now >= p.deadline {
		samples := c.latest(p)
		before, after := alike(p.before, samples)
		c.look(p, before, after, true, samples)
	}
}

// inAll returns how many times better the mean of the samples is than that from
// before the change; 1 where it cannot be told. It is what was achieved in all
// the time. One disturbed sample may change it, so it proves nothing alone; but
// what it contradicts is not proven either.
func inAll(p *proposal, samples []point) float64 {
	if len(p.before) == 0 || len(samples) == 0 {
		return 1
	}
	return gain(mean(p.before), mean(samples), p.tunlet.lower)
}

// look compares what was before with what is after the change. It decides only
// where the difference is plain; else the change is judged in turns. A measured
// loss is undone without asking the tunlet.
func (c *Core) look(p *proposal, before, after []float64, last bool, samples []point) {
	j := compare(before, after, p.tunlet.lower)
	c.touch(p).judgement = &j
	whole := inAll(p, samples)
	proven := j.P <= significance && len(after) >= minSamples
	switch {
	case proven && j.Gain <= 1/obviousGain && whole < 1:
		c.undo(p, StateUndone, "measured loss: "+j.text())
	case proven && j.Gain >= c.plainGain() && whole > 1 && c.expected(p, &j) && c.unprecedented(p, &j):
		c.ask(p, attunev1.Verdict_VERDICT_KEEP)
	case last && len(before) == 0:
		c.undo(p, StateUndone, "no baseline to judge it by")
	case last && len(after) < minSamples:
		p.inconclusive = true
		c.undo(p, StateUndone, fmt.Sprintf("not measurable: only %d samples of the objective in %v", len(after), judgeTimeout))
	case last && c.cfg.Apart:
		p.inconclusive = true
		c.undo(p, StateUndone, "no plain gain, and it cannot be compared in turns while other nodes are tuned apart: "+j.text())
	case last, proven && j.Gain < 1 && !c.cfg.Apart:
		c.startTurns(p, true, samples)
	}
}

// plainGain is the least gain that is kept after one comparison. Without turns
// there is one at each sample, for longer than phases of an application last: what
// these make of its speed must not do.
func (c *Core) plainGain() float64 {
	if c.cfg.Apart {
		return c.overwhelmingGain()
	}
	return obviousGain
}

// overwhelmingGain is more than an application's own phases make of its speed.
func (c *Core) overwhelmingGain() float64 { return obviousGain * obviousGain }

// expected reports whether a gain is what an earlier run measured, or the tunlet's
// model predicts. Many models give a lower bound: that a gain is more than they say
// is no objection where it is overwhelming.
func (c *Core) expected(p *proposal, j *Judgement) bool {
	switch ComparePrediction(c.promised(p), j.Gain) {
	case PredictionHolds:
		return true
	case PredictionTooLow:
		return j.Gain >= c.overwhelmingGain()
	}
	return false
}

// unprecedented reports whether a gain is more than the application ever reached by
// itself. Else it may be another phase of the application, which began when the
// change was made.
func (c *Core) unprecedented(p *proposal, j *Judgement) bool {
	from := p.quietFrom
	for _, one := range p.history().before(from, p.sentAt, historySize) {
		if gain(one.value, j.After.Median, p.tunlet.lower) < modestGain {
			return false
		}
	}
	return true
}

// ask asks the tunlet for its verdict, with what the core would say.
func (c *Core) ask(p *proposal, suggested attunev1.Verdict) {
	p.state, p.suggested = StateAsking, suggested
	p.deadline = c.now + evaluateTimeout
	c.record("judged", p, p.judgement.text())
	if c.decideAlone(p) {
		return
	}
	c.emit(AskEvaluate{Tunlet: p.tunlet.name, Request: &attunev1.EvaluateRequest{
		ProposalId: p.spec.GetId(),
		Before:     p.judgement.Before.proto(),
		After:      p.judgement.After.proto(),
		Suggested:  suggested,
	}})
}

// verdict takes a tunlet's answer.
func (c *Core) verdict(ev Verdict) {
	t := c.tunlets[ev.Tunlet]
	if t == nil {
		return
	}
	if p := t.proposals[ev.Proposal]; p != nil && p.state == StateAsking {
		c.resolve(p, ev.Verdict, ev.Reason)
	}
}

// resolve turns suggestion and opinion into the verdict. The tunlet may veto a
// KEEP and may ask to look longer; it cannot keep what was not measured.
func (c *Core) resolve(p *proposal, opinion attunev1.Verdict, reason string) {
	switch {
	case opinion == attunev1.Verdict_VERDICT_WAIT && p.waits < maxWaits:
		p.waits++
		if p.turns != nil {
			p.turns.hold = len(p.turns.compared) + 2
			c.turn(p)
			return
		}
		p.hold = p.judgement.After.Samples + minSamples
		p.state, p.deadline = StateJudging, c.now+judgeTimeout
	case p.suggested == attunev1.Verdict_VERDICT_UNDO:
		c.undo(p, StateUndone, "no gain: "+p.judgement.text())
	case opinion == attunev1.Verdict_VERDICT_UNDO:
		c.undo(p, StateUndone, "the tunlet's verdict: "+reason)
	default:
		c.keep(p, "gain: "+p.judgement.text())
	}
}

// keep ends the judgement of a proposal that stays. One that is not in force at
// the moment is made again first.
func (c *Core) keep(p *proposal, reason string) {
	if o := p.outdone(); o != nil {
		c.undo(p, StateUndone, fmt.Sprintf("gains less than the %.3gx of tunlet %s: %s", o.gain(), o.tunlet.name, p.judgement.text()))
		return
	}
	p.displaced = nil
	if t := p.turns; t != nil {
		if !t.on {
			t.proven = reason
			c.turn(p)
			return
		}
		p.turns = nil
		if t.without != nil { // else it was not measured without it: it is watched as before
			p.before = t.without
		}
		if t.kept {
			c.keepAgain(p, t, reason)
			return
		}
	}
	p.state, p.reason, p.doneAt, p.watchFrom = StateKept, reason, c.now, c.now
	if p.whole != nil {
		p.whole.aheadUntil = c.now
		c.disturb(p.whole.area())
	}
	c.tellSiblings(p)
	c.record("kept", p, reason)
	c.notify(p, reason)
}

// keepAgain ends a further trial of a change that had been kept, which stays for
// the reason that it was kept for. The next one is put off.
func (c *Core) keepAgain(p *proposal, t *turns, reason string) {
	p.recheckAfter = c.now + cooldown<<min(p.rechecks, maxBackOff)
	p.rechecks++
	p.state, p.watchFrom = StateKept, c.now
	c.record("kept", p, reason)
	p.judgement = t.judged
}

// maxBackOff bounds how often the pause between two further trials of a kept
// change is doubled: from 10 s to 640 s.
const maxBackOff = 6

// watch looks after a kept change: over every window, is the objective worse
// than before the change, by the median and by the mean? Then it is judged again,
// in turns: the application may have come to something else. Samples are rarer by
// now, and of a program whose progress comes in bursts the median alone would
// call that a loss (see alike; joining the few samples from before the change
// would leave too few). A window without any progress says nothing: an
// application between two phases looks the same.
func (c *Core) watch(p *proposal) {
	if len(p.before) < minSamples {
		return
	}
	for _, q := range c.active {
		if q != p && q.experiment() && (q.overlaps(p) || q == p.whole) {
			p.watchFrom = c.now + settleTime
			return
		}
	}
	window := p.history().since(p.watchFrom)
	if c.now < p.watchFrom+watchWindow && len(window) < historySize-1 || len(window) < 2*minSamples {
		return
	}
	p.watchFrom = c.now
	if c.now < p.recheckAfter {
		return
	}
	j := compare(joined(p.before, 0), joined(window, 0), p.tunlet.lower)
	loss := 1 / (1 + p.tunlet.minGain)
	if j.Gain > loss || gain(mean(p.before), mean(window), p.tunlet.lower) > loss ||
		j.P > significance || j.After.Median == 0 && !p.tunlet.lower {
		return
	}
	if c.cfg.Apart {
		c.undo(p, StateUndone, "regressed after it was kept: "+j.text())
		return
	}
	c.startTurns(p, true, window)
}

// text returns the comparison in a line.
func (j *Judgement) text() string {
	gain := fmt.Sprintf("%.3gx", j.Gain)
	switch {
	case j.Before.Samples == 0:
		gain = "gain unknown"
	case math.IsInf(j.Gain, 1):
		gain = "from no progress to some"
	}
	if j.Turns > 0 {
		gain += fmt.Sprintf(" in %d turns", j.Turns)
	}
	return fmt.Sprintf("%s, median %.4g before, %.4g after, p=%.2g, n=%d+%d",
		gain, j.Before.Median, j.After.Median, j.P, j.Before.Samples, j.After.Samples)
}
