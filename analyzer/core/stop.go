// SPDX-License-Identifier: Apache-2.0

package core

import (
	"time"

	"github.com/attune-hpc/attune/analyzer/core/trial"
)

const (
	// longestBeat is more than lies between two steps while a proposal is on its way: its
	// session ticks every 50 ms then, and every 375 ms before it has heard of the proposal.
	longestBeat = time.Second
	// usualBeat is what of such a stop counts as time all the same: on a machine where there is
	// one after the other, a trial takes long, and not for ever.
	usualBeat = 50 * time.Millisecond
)

// stop is a time in which the session did not run: somebody stopped it, mostly together
// with the application (a terminal, a freezer, a scheduler of gangs), or gave it no CPU.
type stop struct{ from, to time.Duration }

// skip leaves a sample of h out, and says so, whose interval lies in the stop for more than
// half of that and a quarter of its own length: what was achieved in it was achieved in less
// time. The times of the stop are those of the steps around it, and not exact. Of a long sample,
// as of an owner's objective, a hiccup takes little: with one in each, none would be left.
func (s stop) skip(h *trial.History, at time.Duration) bool {
	within := min(s.to, at) - max(s.from, h.Latest())
	spoilt := !h.Empty() && 2*within > s.to-s.from && 4*within > at-h.Latest()
	if spoilt {
		h.Skip(at)
	}
	return spoilt
}

// postpone gives p so much more time, whatever it waits for.
func (p *proposal) postpone(by time.Duration) {
	p.deadline += by
	p.aheadUntil = max(p.proposedAt, p.aheadUntil) + by
	if p.readyAt > 0 {
		p.readyAt += by
	}
	if p.undoing.retryAt > 0 {
		p.undoing.retryAt += by
	}
	p.trial.Postpone(by)
}
