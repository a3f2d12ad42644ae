// SPDX-License-Identifier: Apache-2.0

package perprocess

import (
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// lookValues and lookLasting are how much a look is: the Analyzer compares 12 values over
	// 2 s with those from before the change, after the first one, which stands for the pause.
	lookValues  = 14
	lookLasting = 2500 * time.Millisecond
	// lookLongest bounds a look that brings fewer values.
	lookLongest = 10 * time.Second
	// comparisonLongest is how long a comparison takes, and a turn of it at most: that begins
	// anew after a pause of the program. A time in which the session stands still does not
	// count, so the turn is bounded by comparisonValues, those of each 50 ms.
	comparisonLongest = time.Minute
	comparisonValues  = int(comparisonLongest / (50 * time.Millisecond))
)

// Looks are those that a tunlet takes at the objective of its change that was kept. The
// Analyzer watches over the change by what is reported in them, and takes it back if it
// does harm later. Between them the tunlet measures nothing: they are 2 s apart at first
// and 64 s at last, and a look takes 3 s. While the change is compared again the look
// goes on.
//
// The zero Looks are of no change. Not safe for use by several goroutines.
type Looks struct {
	proposal string
	undone   string // was kept, and may be tried again: it made room for another tunlet's
	open     bool
	lifted   bool      // it is taken back, to compare, or to be tried again
	compares bool      // the look is one at a comparison, whose turns take more values
	from     time.Time // when the look began, or the next one is due
	values   int       // of the objective in the look
	backoff  sdk.Backoff
}

// Begin begins to look after a proposal that was kept, with a look.
func (l *Looks) Begin(now time.Time, proposal string) {
	*l = Looks{proposal: proposal}
	l.begin(now)
}

// TakeUp looks after a proposal that the tunlet had made in a scope, and that was kept, before
// it was started again: a look is due with the next sample, since a tunlet that begins knows
// only when the session began. It returns false, and does nothing, of other proposals.
func (l *Looks) TakeUp(c sdk.ProposalChange, scope string) bool {
	if c.Earlier == nil || c.Earlier.Scope != scope || c.State != sdk.Kept {
		return false
	}
	*l = Looks{proposal: c.Proposal}
	return true
}

func (l *Looks) begin(now time.Time) { l.open, l.from, l.values = true, now, 0 }

// Hear takes what became of a proposal. It says whether a look has begun, for which the
// tunlet has to measure, or whether nothing is to be looked after any more. A change that had to
// make room to another tunlet's, and is to be tried again, is looked at until it is judged.
func (l *Looks) Hear(now time.Time, c sdk.ProposalChange) (began, ended bool) {
	switch {
	case c.Proposal == l.undone && c.State == sdk.Applying:
		*l = Looks{proposal: c.Proposal, lifted: true, compares: true}
		l.begin(now)
		return true, false
	case l.proposal == "" || c.Proposal != l.proposal:
		return false, false
	case c.State == sdk.Lifted, c.State == sdk.Kept && l.lifted:
		l.lifted, l.compares, began = c.State == sdk.Lifted, true, !l.open
		l.begin(now)
		return began, false
	case c.State == sdk.Kept: // the verdict, after a turn in which it was in force
		l.compares = false
		return false, false
	case !c.State.Final():
		return false, false
	}
	*l = Looks{undone: c.Proposal}
	return false, true
}

// Due begins the next look if it is time, and says so.
func (l *Looks) Due(now time.Time) bool {
	if l.proposal == "" || l.open || now.Before(l.from) {
		return false
	}
	l.begin(now)
	return true
}

// Open says whether a look goes on.
func (l *Looks) Open() bool { return l.open }

// Reported counts a value of the objective.
func (l *Looks) Reported() { l.values++ }

// Over says whether the look has brought enough, or will not.
func (l *Looks) Over(now time.Time) bool {
	lasted := now.Sub(l.from)
	switch {
	case !l.open || l.lifted:
		return false
	case l.compares:
		return l.values >= comparisonValues || l.values == 0 && lasted >= comparisonLongest
	}
	return l.values >= lookValues && lasted >= lookLasting || lasted >= lookLongest
}

// End ends the look, and has the next one wait.
func (l *Looks) End(now time.Time) {
	l.open, l.compares, l.from = false, false, now.Add(l.backoff.Next())
}

// Until is the interest until the next look: another one in its place, if that is sooner.
func (l *Looks) Until(now time.Time, sooner sdk.Interest) sdk.Interest {
	if l.proposal == "" {
		return sooner
	}
	return sooner.OrAfter(max(l.from.Sub(now), 1))
}
