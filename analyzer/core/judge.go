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
	p.from = p.appliedAt + c.cfg.Settle
	p.hold = c.cfg.MinSamples
	p.deadline = c.now + c.cfg.JudgeTimeout
	reason := ""
	switch n := len(p.before); {
	case n == 0:
		reason = "no baseline"
	case n < c.cfg.MinSamples:
		reason = fmt.Sprintf("weak baseline of %d samples", n)
	}
	c.record("applied", p, reason)
	c.notify(p, reason)
}

// judge looks at the samples after the change: at each sample once there are
// enough, with a stricter level than at the last look.
func (c *Core) judge(p *proposal) {
	samples := p.history().since(p.from)
	before, after := alike(p.before, samples)
	if len(after) < p.hold {
		return
	}
	last := len(after) >= c.cfg.MaxSamples+p.waits*c.cfg.MinSamples
	c.look(p, before, after, last, inAll(p, samples))
}

// checkJudging ends a judgement that gets no samples.
func (c *Core) checkJudging(p *proposal) {
	if c.now >= p.deadline {
		samples := p.history().since(p.from)
		before, after := alike(p.before, samples)
		c.look(p, before, after, true, inAll(p, samples))
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

// look compares, and asks the tunlet where its opinion can count. A measured
// loss is undone without asking. inAll is the gain by the mean.
func (c *Core) look(p *proposal, before, after []float64, last bool, inAll float64) {
	j := compare(before, after, p.tunlet.lower)
	p.judgement = &j
	alpha := c.cfg.EarlyAlpha
	if last {
		alpha = c.cfg.Alpha
	}
	proven := j.P <= alpha && len(after) >= c.cfg.MinSamples
	switch {
	case proven && j.Gain < 1 && inAll < 1:
		c.undo(p, StateUndone, "measured loss: "+j.text())
	case proven && j.Gain >= 1+p.tunlet.minGain && inAll > 1:
		c.ask(p, attunev1.Verdict_VERDICT_KEEP)
	case last && len(before) == 0:
		c.undo(p, StateUndone, "no baseline to judge it by")
	case last && len(after) < c.cfg.MinSamples:
		c.undo(p, StateUndone, fmt.Sprintf("not measurable: only %d samples of the objective in %v", len(after), c.cfg.JudgeTimeout))
	case last:
		c.ask(p, attunev1.Verdict_VERDICT_UNDO)
	}
}

// ask asks the tunlet for its verdict, with what the core would say.
func (c *Core) ask(p *proposal, suggested attunev1.Verdict) {
	p.state, p.suggested = StateAsking, suggested
	p.deadline = c.now + c.cfg.EvaluateTimeout
	c.record("judged", p, p.judgement.text())
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
	case opinion == attunev1.Verdict_VERDICT_WAIT && p.waits < c.cfg.MaxWaits:
		p.waits++
		p.hold = p.judgement.After.Samples + c.cfg.MinSamples
		p.state, p.deadline = StateJudging, c.now+c.cfg.JudgeTimeout
	case p.suggested == attunev1.Verdict_VERDICT_UNDO:
		c.undo(p, StateUndone, "no gain: "+p.judgement.text())
	case opinion == attunev1.Verdict_VERDICT_UNDO:
		c.undo(p, StateUndone, "the tunlet's verdict: "+reason)
	default:
		c.keep(p, "gain: "+p.judgement.text())
	}
}

// keep ends the judgement of a proposal that stays.
func (c *Core) keep(p *proposal, reason string) {
	p.state, p.reason, p.doneAt, p.watchFrom = StateKept, reason, c.now, c.now
	c.record("kept", p, reason)
	c.notify(p, reason)
}

// watch looks after a kept change: over every window, is the objective worse
// than before the change, by the median and by the mean? Samples are rarer by
// now, and of a program whose progress comes in bursts the median alone would
// call that a loss (see alike; joining the few samples from before the change
// would leave too few). A window without any progress says nothing: an
// application between two phases looks the same.
func (c *Core) watch(p *proposal) {
	if len(p.before) < c.cfg.MinSamples {
		return
	}
	for _, q := range c.active {
		if q != p && q.experiment() && q.overlaps(p) {
			p.watchFrom = c.now + c.cfg.Settle
			return
		}
	}
	window := p.history().since(p.watchFrom)
	if c.now < p.watchFrom+c.cfg.WatchWindow && len(window) < historySize-1 || len(window) < 2*c.cfg.MinSamples {
		return
	}
	p.watchFrom = c.now
	j := compare(joined(p.before, 0), joined(window, 0), p.tunlet.lower)
	loss := 1 / (1 + p.tunlet.minGain)
	if j.Gain > loss || gain(mean(p.before), mean(window), p.tunlet.lower) > loss ||
		j.P > c.cfg.EarlyAlpha || j.After.Median == 0 && !p.tunlet.lower {
		return
	}
	p.judgement = &j
	c.undo(p, StateUndone, "regressed after it was kept: "+j.text())
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
	return fmt.Sprintf("%s, median %.4g before, %.4g after, p=%.2g, n=%d+%d",
		gain, j.Before.Median, j.After.Median, j.P, j.Before.Samples, j.After.Samples)
}
