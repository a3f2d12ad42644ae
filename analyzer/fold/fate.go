// SPDX-License-Identifier: Apache-2.0

package fold

import (
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
	last    map[string]fated // by the change's id
}

// fated is a change as it stood when it was last told of. A proposal cedes changes to others,
// and the two are told of in either order.
type fated struct {
	*attunev1.RecordedChange
	of   *proposal // that had it
	kept bool      // once, whatever came of it
}

// take takes over what [proposals.take] returns. What was inherited is counted already.
func (f *fates) take(before, now *proposal, inherited bool) {
	if now == nil {
		return
	}
	if !inherited {
		f.count(before, now)
	}
	for _, ch := range now.GetChanges() {
		if id := ch.GetSpec().GetId(); id != "" { // else it was refused when it came
			f.last[id] = fated{ch, now, f.last[id].kept || now.keeps(ch)}
		}
	}
}

// count counts what has become of a proposal's changes since they were last told of.
func (f *fates) count(before, now *proposal) {
	refusals := uint64(0) // of the proposal as a whole
	if now.GetState() == stateRefused {
		refusals = uint64(max(1, now.GetTimes()))
		if before.GetState() == stateRefused {
			refusals -= min(refusals, uint64(max(1, before.GetTimes())))
		}
	}
	proven := false // for the first time: not again when it is compared once more
	for _, ch := range now.GetChanges() {
		was := f.last[ch.GetSpec().GetId()]
		turned := func(to attunev1.Outcome) uint64 { return one(ch.GetOutcome() == to && was.GetOutcome() != to) }
		refused := turned(attunev1.Outcome_OUTCOME_REFUSED)
		if tookEffect(ch) { // it was refused when it was to be made again, and is undone
			refused = 0
		}
		if ch.GetOutcome() == attunev1.Outcome_OUTCOME_UNSPECIFIED {
			refused = refusals
		}
		kept := now.keeps(ch) && !was.kept
		proven = proven || kept
		f.add(now.GetTunlet(), "applied", one(tookEffect(ch) && !tookEffect(was.RecordedChange)))
		f.add(now.GetTunlet(), stateKept, one(kept))
		f.add(now.GetTunlet(), report.VerdictUndone, one(now.gaveBack(ch) && !was.of.gaveBack(was.RecordedChange)))
		f.add(now.GetTunlet(), stateRefused, refused)
		f.add(now.GetTunlet(), report.VerdictFailed, turned(attunev1.Outcome_OUTCOME_FAILED))
	}
	// Without a judgement the gain is a sibling's, which is counted already.
	gain, measured := now.GetGain(), now.GetJudgement() != nil && !now.GetCanary()
	if proven && measured && gain > 0 && !math.IsInf(gain, 0) && len(f.gains) < maxGains {
		f.gains = append(f.gains, Gain{now.GetTunlet(), gain})
	}
}

// forget drops the changes of proposals that nobody will tell of again.
func (f *fates) forget(forgotten []*proposal) {
	for _, p := range forgotten {
		for _, ch := range p.GetChanges() {
			if id := ch.GetSpec().GetId(); f.last[id].of == p {
				delete(f.last, id)
			}
		}
	}
}

// keeps reports whether a change of a proposal that was kept once is in force.
func (p *proposal) keeps(ch *attunev1.RecordedChange) bool {
	return p.wasKept && ch.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED
}

// gaveBack reports whether a change of a proposal was undone for good, and not to compare, or
// while the rest is being undone.
func (p *proposal) gaveBack(ch *attunev1.RecordedChange) bool {
	refusedAgain := ch.GetOutcome() == attunev1.Outcome_OUTCOME_REFUSED && tookEffect(ch)
	if ch.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE && !refusedAgain {
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
