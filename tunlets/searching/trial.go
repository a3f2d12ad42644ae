// SPDX-License-Identifier: Apache-2.0

package searching

import (
	"fmt"
	"math"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/search"
)

const (
	// soonProven is the gain from which on the Analyzer is left to keep a trial: it
	// takes two to four comparisons, and a knob whose change was kept need not rest
	// when that is withdrawn.
	soonProven = 1.5
	// patience is how long a trial may take in all.
	patience = 8 * time.Second
)

// trial is a value that is proposed.
type trial struct {
	id      string
	point   search.Point
	result  bool      // it is to stay
	applied time.Time // zero: not yet
	leaving bool      // it was withdrawn
	known   bool      // the search was told
}

// propose sets the variable in all processes that call the function. predicted is the
// gain that was measured; 0: none.
func (t *Tunlet) propose(h *sdk.Host, one *trial, predicted float64, reason string) {
	t.count++
	one.id = fmt.Sprintf("%s-%d", Name, t.count)
	t.run.trial = one
	t.run.meter.try(t.program.bits(one.point[0]))
	p := sdk.Proposal{ID: one.id, Scope: t.scope(), Reason: reason, PredictedGain: predicted, Confidence: 0.5}
	for _, handle := range t.handles() {
		m := t.members[handle]
		if !m.calls {
			continue
		}
		p.Changes = append(p.Changes, sdk.Change{
			Knob: knob, Process: handle,
			Action: sdk.SetVariable(t.program.object, t.program.variable, t.program.size, t.program.value(one.point[0])),
		})
		if handle != t.lead { // all that there was to know
			m.unwatch(h, handle)
		}
	}
	h.Propose(p)
}

// follow takes a trial back once it was measured.
func (t *Tunlet) follow(h *sdk.Host) {
	one := t.run.trial
	if one.result || one.leaving || one.applied.IsZero() {
		return
	}
	gain, ok := t.run.meter.gain()
	impatient := h.Now().Sub(one.applied) >= patience
	if !impatient && (!t.run.meter.measured() || gain >= soonProven) {
		return
	}
	one.leaving = true
	if !ok {
		h.Withdraw(one.id, "it could not be measured")
		return
	}
	h.Withdraw(one.id, fmt.Sprintf("measured: %.3g times the calls", gain))
}

// ProposalChanged follows its proposals.
func (t *Tunlet) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	r := t.run
	if r == nil || r.trial == nil || r.trial.id != c.Proposal {
		return
	}
	switch one := r.trial; c.State {
	case sdk.Applied:
		if one.applied.IsZero() {
			one.applied = h.Now()
		}
	case sdk.Kept:
		t.kept(h, one)
	case sdk.Undone:
		t.undone(h, one)
	case sdk.Refused, sdk.Failed, sdk.Advised:
		t.failed(h, c)
	}
}

// kept takes a trial back that was measured well, to try the next one; a result stays.
func (t *Tunlet) kept(h *sdk.Host, one *trial) {
	if !one.result {
		tellSearch(t, h, one)
		if !one.leaving {
			one.leaving = true
			h.Withdraw(one.id, "measured; the search goes on")
		}
		return
	}
	t.run.over = true
	for _, p := range t.handles() {
		m := t.members[p]
		m.done = m.done || m.calls
		if p != t.lead { // by whose calls the Analyzer goes on to judge it
			m.unwatch(h, p)
		}
	}
}

// undone goes on after a trial. One that had been kept leaves no rest behind.
func (t *Tunlet) undone(h *sdk.Host, one *trial) {
	if t.run.over { // a result that was kept no longer pays, or the search was given up
		t.run.trial = nil
		for _, p := range t.handles() {
			t.members[p].unwatch(h, p)
		}
		return
	}
	pause := sdk.RetryPause
	if one.known {
		pause = 0
	}
	tellSearch(t, h, one)
	t.leave(h, pause)
}

// leave has no trial in force any more, and tries none for a while. Nothing is measured
// meanwhile; and where a measure point is placed anew samples come more often, which the
// Analyzer can compare sooner.
func (t *Tunlet) leave(h *sdk.Host, pause time.Duration) {
	t.run.trial, t.run.pause = nil, pause
	t.run.meter.end()
	if pause > 0 {
		t.members[t.lead].unwatch(h, t.lead)
	}
}

// tellSearch tells the search what a trial achieved, once. A result that did not stay has
// not been better, whatever was measured of it.
func tellSearch(t *Tunlet, h *sdk.Host, one *trial) {
	if one.known {
		return
	}
	one.known = true
	gain, ok := t.run.meter.gain()
	switch {
	case !ok:
		gain = math.NaN()
	case one.result:
		gain = min(gain, 1)
	}
	if err := t.run.search.Tell(one.point, gain); err != nil {
		t.finish(h, err.Error()) // its own point: cannot be
	}
}

// failed tries again later, a few times: somebody else may have the process.
func (t *Tunlet) failed(h *sdk.Host, c sdk.ProposalChange) {
	r := t.run
	if r.over {
		return
	}
	if r.failures++; r.failures >= maxFailures {
		t.finish(h, c.Reason)
		return
	}
	if r.trial.result {
		r.results--
	} else {
		r.tried--
	}
	t.leave(h, sdk.RetryPause)
}
