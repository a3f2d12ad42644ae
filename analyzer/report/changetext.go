// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/attune-hpc/attune/internal/quantity"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// group is the same change in one or more processes.
type group struct {
	Change
	processes []int
}

// groupChanges joins changes that differ in the process only.
func groupChanges(changes []Change) []*group {
	var out []*group
	index := map[string]*group{}
	for _, c := range changes {
		key := strings.Join([]string{c.Tunlet, c.Proposal, c.Knob, c.Old.String(), c.New.String(), c.Verdict, c.Reason}, "\x00")
		g := index[key]
		if g == nil {
			g = &group{Change: c}
			index[key] = g
			out = append(out, g)
		}
		g.processes = append(g.processes, c.Process)
	}
	return out
}

// judgedWith reports whether two changes belong to one proposal and share what
// came of it.
func (g *group) judgedWith(o *group) bool {
	return g.Tunlet == o.Tunlet && g.Proposal == o.Proposal && g.Verdict == o.Verdict && g.Reason == o.Reason
}

// change writes what was changed.
func (p *printer) change(r *Report, g *group) {
	colour := map[string]style{VerdictKept: green, VerdictUndone: yellow, VerdictFailed: red}[g.Verdict]
	text := g.what() + " in " + processes(g.processes)
	if g.AppliedSeconds != nil {
		text += " after " + quantity.Seconds(r.intoCommand(*g.AppliedSeconds))
	}
	if g.SafePoint != "" && g.SafePoint != attunev1.SafePointNow && len(g.processes) == 1 {
		text += ", at " + g.SafePoint
	}
	p.line(2, colour, g.Verdict, "%s: %s", g.Tunlet, text)
}

// outcome writes what changes that were judged together brought.
func (p *printer) outcome(g *group) {
	if g.Objective != nil {
		p.line(4, plain, "", "%s", g.Objective.text())
	}
	if text := g.disagreement(); text != "" {
		p.line(4, plain, "", "%s", text)
	}
	switch {
	case g.Verdict == VerdictRefused:
		p.line(4, plain, "", "why: %s%s", g.Why, predicted(g.PredictedGain))
		p.line(4, plain, "", "why not: %s", strings.TrimPrefix(g.Reason, "refused: "))
	case g.Verdict != VerdictKept || g.Objective == nil || g.Objective.Gain == nil:
		p.line(4, plain, "", "why: %s", g.Reason)
	}
}

// objective writes what was measured of the owner's objective.
func (p *printer) objective(o *OwnObjective) {
	switch {
	case o == nil:
	case o.Mean == nil:
		p.line(2, yellow, "objective", "%s", o.text())
	default:
		p.line(2, plain, "objective", "%s", o.text())
	}
}

// text says what was measured; of nil nothing.
func (o *OwnObjective) text() string {
	switch {
	case o == nil:
		return ""
	case o.Mean == nil:
		return fmt.Sprintf("%s: no value: %s", o.Name, o.Description)
	}
	better := ""
	if o.LowerIsBetter {
		better = "; less is better"
	}
	return fmt.Sprintf("%s: %s %s on average, %s: %s%s", o.Name, figure(*o.Mean, 4), o.Unit, quantity.Count(o.Values, "value", "values"), o.Description, better)
}

// disagreement says that a model did not predict what was measured; empty: it
// did, or nothing can be told.
func (g *group) disagreement() string {
	what := map[string]string{"too_high": "more than there was", "too_low": "less than there was", "wrong": "but it is worse"}[g.Prediction]
	if what == "" {
		return ""
	}
	return fmt.Sprintf("the model of %s predicted %s times better: %s", g.Tunlet, figure(g.PredictedGain, 3), what)
}

// text says what an objective did, and whose it is.
func (o *Objective) text() string {
	if o.Own {
		return "by your objective: " + o.comparison()
	}
	return o.comparison()
}

// comparison says what an objective did.
func (o *Objective) comparison() string {
	if o.TooFew {
		return fmt.Sprintf("too few events to compare (%d in %d windows): %s", o.Events, o.Windows, o.Name)
	}
	p := ""
	if o.P != nil {
		p = fmt.Sprintf(", p=%.1g", *o.P)
	}
	if o.Turns > 0 {
		p += fmt.Sprintf(", in %d turns", o.Turns)
	}
	unit := ""
	if o.Unit != "" {
		unit = " " + o.Unit
	}
	return fmt.Sprintf("%s: %s %s → %s%s%s", o.gainText(), o.Name, o.Before.text(), o.After.text(), unit, p)
}

// gainText returns the gain in words, with its interval.
func (o *Objective) gainText() string {
	switch {
	case o.Gain == nil && o.GainLow != nil && *o.GainLow > 1: // from nothing
		return "at least " + gainWords(*o.GainLow)
	case o.Gain == nil:
		return "gain unknown"
	case o.GainLow == nil && o.GainHigh == nil:
		return gainWords(*o.Gain)
	case o.GainHigh == nil:
		return fmt.Sprintf("%s [95 %% sure: at least %s times]", gainWords(*o.Gain), figure(*o.GainLow, 3))
	case o.GainLow == nil:
		return fmt.Sprintf("%s [95 %% sure: at most %s times]", gainWords(*o.Gain), figure(*o.GainHigh, 3))
	}
	return fmt.Sprintf("%s [95 %% sure: %s to %s times]", gainWords(*o.Gain), figure(*o.GainLow, 3), figure(*o.GainHigh, 3))
}

// gainWords returns a ratio in words.
func gainWords(gain float64) string {
	switch {
	case figure(gain, 3) == "1":
		return "no difference"
	case gain > 1:
		return figure(gain, 3) + " times better"
	}
	return figure(100*(1-gain), 2) + " % worse"
}

// text returns the level.
func (e Estimate) text() string {
	if e.Samples == 0 {
		return "unknown"
	}
	return figure(e.Median, 4)
}
