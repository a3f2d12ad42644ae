// SPDX-License-Identifier: Apache-2.0

package tuned

import (
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
)

// Change is one knob of one proposal, over all processes that it was changed
// in.
type Change struct {
	// Tunlet and Knob say who changed what.
	Tunlet, Knob string
	// Old and New are the values of the first process.
	Old, New string
	// Processes is the number of processes.
	Processes int
	// Verdict is what became of it, and Reason why.
	Verdict, Reason string
	// Applied is when the last process had it; the zero time when none did.
	Applied time.Time
	// Predicted and Measured are how many times better its tunlet's model said
	// that the objective would get, and how many times it did; 0 where unknown.
	Predicted, Measured float64

	proposal string
}

// Changes returns what was changed, in the report's order.
func Changes(r report.Report) []Change {
	var changes []Change
	for _, c := range r.Changes {
		at := slices.IndexFunc(changes, func(have Change) bool {
			return have.proposal == c.Proposal && have.Tunlet == c.Tunlet && have.Knob == c.Knob && have.Verdict == c.Verdict
		})
		if at < 0 {
			at = len(changes)
			changes = append(changes, Change{
				Tunlet: c.Tunlet, Knob: c.Knob, Old: c.Old.String(), New: c.New.String(),
				Verdict: c.Verdict, Reason: c.Reason, proposal: c.Proposal,
				Predicted: c.PredictedGain, Measured: measured(c),
			})
		}
		changes[at].Processes++
		if c.AppliedAt != nil && c.AppliedAt.After(changes[at].Applied) {
			changes[at].Applied = *c.AppliedAt
		}
	}
	return changes
}

func measured(c report.Change) float64 {
	if c.Objective == nil || c.Objective.Gain == nil {
		return 0
	}
	return *c.Objective.Gain
}

// Proposals is the number of proposals that the changes belong to.
func Proposals(changes []Change) int {
	distinct := map[[2]string]bool{}
	for _, c := range changes {
		distinct[[2]string{c.Tunlet, c.proposal}] = true
	}
	return len(distinct)
}

// Of returns the changes that a tunlet made.
func Of(tunlet string, changes []Change) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return c.Tunlet != tunlet })
}

// FirstKept returns when the first proposal that was kept had reached all of
// its processes, and whether there was one.
func FirstKept(changes []Change) (time.Time, bool) {
	var first *Change
	var at time.Time
	for i, c := range changes {
		if c.Verdict != report.VerdictKept || c.Applied.IsZero() {
			continue
		}
		if first == nil {
			first = &changes[i]
		}
		if c.proposal == first.proposal && c.Tunlet == first.Tunlet && c.Applied.After(at) {
			at = c.Applied
		}
	}
	return at, first != nil
}
