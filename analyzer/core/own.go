// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/analyzer/core/trial"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ownObjective is the owner's, which outranks those of the tunlets. It is about the
// application as a whole: while a change is tried, no other is. nil: there is none.
type ownObjective struct {
	*attunev1.Objective
	history trial.History
}

const (
	// silentFor bounds the wait for a first value: programs begin to print when they
	// have read their input.
	silentFor = 90 * time.Second
	// usualPace is how far between values are at most for which trials are made, and
	// slowestPace how many times as long a trial takes at most: 20 minutes instead of one.
	usualPace   = 250 * time.Millisecond
	slowestPace = 20
)

func newOwnObjective(o *attunev1.Objective) *ownObjective {
	if o == nil {
		return nil
	}
	return &ownObjective{Objective: o}
}

// outrank returns what judges instead of a tunlet's objective. What its model or an earlier
// run promises is about another figure. The least gain worth keeping stays the tunlet's.
func (own *ownObjective) outrank(o trial.Objective) trial.Objective {
	if own == nil {
		return o
	}
	o.History, o.Lower, o.Promised, o.Name, o.Pace = &own.history, own.GetLowerIsBetter(), 0, own.GetName(), paceOf(own.history.Distance())
	return o
}

// paceOf is how many times as long as usual a trial takes of values that far between.
func paceOf(distance time.Duration) float64 {
	return min(slowestPace, max(1, float64(distance)/float64(usualPace)))
}

// silence is how long a change waits for a first value: of a tunlet's objective for as
// long as a baseline goes back, since a crowded machine may deliver late what it measures.
func (own *ownObjective) silence(apart bool) time.Duration {
	if own == nil {
		return trial.BaselineWindow(apart)
	}
	return silentFor
}

// unpaced reports whether nobody knows how far between values are.
func (own *ownObjective) unpaced() bool { return own != nil && own.history.Distance() == 0 }

// noBaseline says why p is not tried. Nil: by its tunlet's objective.
func (own *ownObjective) noBaseline(p *proposal, now time.Duration) string {
	if own == nil {
		scope := p.spec.GetScope()
		return fmt.Sprintf("no baseline: the objective has no sample in scope %q from before the change%s", scope, p.tunlet.scopes.LeftOut(scope, now))
	}
	if own.history.Empty() {
		return fmt.Sprintf("your objective %q has had no value for %v: what cannot be judged is not tried", own.GetName(), silentFor)
	}
	return fmt.Sprintf("no baseline: your objective %q has had no value of late", own.GetName())
}
