// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"maps"
	"math"

	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Fate is what became of a tunlet's change: applied, kept, undone, refused or failed.
type Fate struct{ Tunlet, Result string }

// Gain is a tunlet's proven gain, as a ratio.
type Gain struct {
	Tunlet string
	Ratio  float64
}

// maxGains bounds the gains of a session.
const maxGains = 1024

// fates count what became of changes, also of those that the session has forgotten.
type fates struct {
	changes map[Fate]uint64
	gains   []Gain
	// ceded are changes that a proposal has lost, until they are heard of in another one.
	ceded map[string]*attunev1.RecordedChange
}

// take takes over how a proposal stands, and how it stood; the zero value: nobody knew it.
func (f *fates) take(before, now *proposal) {
	old := make(map[string]*attunev1.RecordedChange)
	for _, ch := range before.GetChanges() {
		old[ch.GetSpec().GetId()] = ch
	}
	f.passOn(old, now)
	kept := now.wasKept && !before.wasKept // not again when it is compared once more
	refusals := uint64(0)                  // of the proposal as a whole
	if now.GetState() == stateRefused {
		refusals = uint64(max(1, now.GetTimes()))
		if before.GetState() == stateRefused {
			refusals -= min(refusals, uint64(max(1, before.GetTimes())))
		}
	}
	for _, ch := range now.GetChanges() {
		was := old[ch.GetSpec().GetId()]
		turned := func(to attunev1.Outcome) uint64 { return one(ch.GetOutcome() == to && was.GetOutcome() != to) }
		refused := turned(attunev1.Outcome_OUTCOME_REFUSED)
		if ch.GetOutcome() == attunev1.Outcome_OUTCOME_UNSPECIFIED {
			refused = refusals
		}
		f.add(now.GetTunlet(), "applied", one(ch.GetAppliedNanos() > 0 && was.GetAppliedNanos() == 0))
		f.add(now.GetTunlet(), stateKept, one(kept && ch.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED))
		f.add(now.GetTunlet(), report.VerdictUndone, one(now.gaveBack(ch) && !before.gaveBack(was)))
		f.add(now.GetTunlet(), stateRefused, refused)
		f.add(now.GetTunlet(), report.VerdictFailed, turned(attunev1.Outcome_OUTCOME_FAILED))
	}
	gain := now.GetGain()
	if kept && !now.GetCanary() && gain > 0 && !math.IsInf(gain, 0) && len(f.gains) < maxGains {
		f.gains = append(f.gains, Gain{now.GetTunlet(), gain})
	}
}

// passOn moves changes that now has no more to the proposal that has them next: what was
// counted of them is not counted again.
func (f *fates) passOn(old map[string]*attunev1.RecordedChange, now *proposal) {
	lost := maps.Clone(old)
	for _, ch := range now.GetChanges() {
		id := ch.GetSpec().GetId()
		if was := f.ceded[id]; was != nil {
			old[id] = was
			delete(f.ceded, id)
		}
		delete(lost, id)
	}
	maps.Copy(f.ceded, lost)
}

// gaveBack reports whether a change of a proposal was undone for good, and not to compare, or
// while the rest is being undone.
func (p *proposal) gaveBack(ch *attunev1.RecordedChange) bool {
	if ch.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		return false
	}
	switch p.GetState() {
	case report.VerdictUndone, report.VerdictFailed, stateEnded, stateKept: // kept until the session ended
		return true
	}
	return false
}

func (f *fates) add(tunlet, result string, n uint64) {
	if n > 0 {
		f.changes[Fate{tunlet, result}] += n
	}
}

func one(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}
