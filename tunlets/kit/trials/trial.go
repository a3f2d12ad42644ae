// SPDX-License-Identifier: Apache-2.0

package trials

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

// propose has a value proposed. predicted is the gain that was measured; 0: none.
func (s *Search) propose(h *sdk.Host, one *trial, predicted float64, reason string) {
	s.trial = one
	s.meter.try(s.options.Variable.bits(one.point[0]))
	one.id = s.site.Propose(h, sdk.Proposal{Reason: reason, PredictedGain: predicted, Confidence: 0.5}, one.point[0])
}

// follow takes a trial back once it was measured.
func (s *Search) follow(h *sdk.Host) {
	one := s.trial
	if one.result || one.leaving || one.applied.IsZero() {
		return
	}
	gain, ok := s.meter.gain()
	impatient := h.Now().Sub(one.applied) >= patience
	if !impatient && (!s.meter.measured() || gain >= soonProven) {
		return
	}
	one.leaving = true
	if !ok {
		h.Withdraw(one.id, "it could not be measured")
		return
	}
	h.Withdraw(one.id, fmt.Sprintf("measured: %.3g times the calls", gain))
}

// ProposalChanged follows the proposals; of others it takes no notice.
func (s *Search) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	if s.trial == nil || s.trial.id != c.Proposal {
		return
	}
	switch one := s.trial; c.State {
	case sdk.Applied:
		if one.applied.IsZero() {
			one.applied = h.Now()
		}
	case sdk.Kept:
		s.kept(h, one)
	case sdk.Undone:
		s.undone(h, one)
	case sdk.Refused, sdk.Failed, sdk.Advised:
		s.failed(h, c)
	}
}

// kept takes a trial back that was measured well, to try the next one; a result stays.
func (s *Search) kept(h *sdk.Host, one *trial) {
	if !one.result {
		s.tellSearch(h, one)
		if !one.leaving {
			one.leaving = true
			h.Withdraw(one.id, "measured; the search goes on")
		}
		return
	}
	s.over = true
	s.site.Kept(h)
}

// undone goes on after a trial. One that had been kept leaves no rest behind.
func (s *Search) undone(h *sdk.Host, one *trial) {
	if s.over { // a result that was kept no longer pays, or the search was given up
		s.trial = nil
		s.site.Over(h, "")
		return
	}
	pause := sdk.RetryPause
	if one.known {
		pause = 0
	}
	s.tellSearch(h, one)
	s.leave(h, pause)
}

// leave has no trial in force any more, and tries none for a while. Nothing is measured
// meanwhile; and where a measure point is placed anew samples come more often, which the
// Analyzer can compare sooner.
func (s *Search) leave(h *sdk.Host, pause time.Duration) {
	s.trial, s.pause = nil, pause
	s.meter.end()
	if pause > 0 {
		s.site.Measure(h, false)
	}
}

// tellSearch tells the search what a trial achieved, once. A result that did not stay has
// not been better, whatever was measured of it.
func (s *Search) tellSearch(h *sdk.Host, one *trial) {
	if one.known {
		return
	}
	one.known = true
	gain, ok := s.meter.gain()
	switch {
	case !ok:
		gain = math.NaN()
	case one.result:
		gain = min(gain, 1)
	}
	if err := s.search.Tell(one.point, gain); err != nil {
		s.finish(h, err.Error()) // its own point: cannot be
	}
}

// failed tries again later, a few times: somebody else may have the process.
func (s *Search) failed(h *sdk.Host, c sdk.ProposalChange) {
	if s.over {
		return
	}
	if s.failures++; s.failures >= maxFailures {
		s.finish(h, c.Reason)
		return
	}
	if s.trial.result {
		s.results--
	} else {
		s.tried--
	}
	s.leave(h, sdk.RetryPause)
}
