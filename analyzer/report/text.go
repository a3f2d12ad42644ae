// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TextOptions configures WriteText. The zero value is usable.
type TextOptions struct {
	// Color allows terminal colours.
	Color bool
	// Width is the terminal's width in columns; 0: lines are not wrapped.
	Width int
}

// WriteText writes the report for people: two lines for a command that ran for less than
// a second if nothing was changed, advised or wrong, and a few more otherwise.
func (r *Report) WriteText(w io.Writer, opts TextOptions) error {
	p := &printer{opts: opts}
	p.head(r)
	groups := groupChanges(r.Changes)
	for i, g := range groups {
		p.change(g)
		if i+1 == len(groups) || !g.judgedWith(groups[i+1]) {
			p.outcome(g)
		}
	}
	for _, a := range r.Advice {
		p.advice(a)
	}
	for _, f := range r.Refused {
		p.line(2, dim, "refused", "%s: %s: %s%s", f.Tunlet, strings.Join(f.Actions, ", "), f.Reason, times(f.Times))
	}
	p.objective(r.Objective)
	p.points(r.Points)
	p.tunlets(r.Tunlets)
	p.blind(r.Processes)
	for _, m := range r.Remarks {
		p.line(2, dim, "note", "%s: %s", m.From, m.Text)
	}
	p.took(r)
	p.foot(r)
	_, err := w.Write(p.buf.Bytes())
	return err
}

// style is a terminal colour; plain is none.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// printer lays out lines.
type printer struct {
	opts TextOptions
	buf  bytes.Buffer
}

// labelWidth aligns the texts behind the labels.
const labelWidth = 9

// line writes a label and a text, wrapped at the width with a hanging indent.
func (p *printer) line(indent int, s style, label, format string, args ...any) {
	start := indent + labelWidth + 1
	if indent == 0 {
		start = len(label) + 1
	}
	shown := label
	if p.opts.Color && s != plain {
		shown = "\x1b[" + string(s) + "m" + label + "\x1b[0m"
	}
	fmt.Fprintf(&p.buf, "%*s%s%*s", indent, "", shown, max(1, start-indent-len(label)), "")
	for i, part := range wrap(fmt.Sprintf(format, args...), p.opts.Width-start) {
		if i > 0 {
			fmt.Fprintf(&p.buf, "%*s", start, "")
		}
		p.buf.WriteString(Printable(part) + "\n")
	}
}

// wrap cuts text at spaces into lines of at most width columns, where that can
// be done; a width below 20 means no limit. Several errors, a line each, become one text.
func wrap(text string, width int) []string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case width >= 20 && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// head says what ran, how it ended, and what came of it.
func (p *printer) head(r *Report) {
	p.line(0, bold, "attune:", "%s %s; %s", commandName(r.Command), r.ran(), r.result())
}

// ran says how long the command ran, and how it ended. The session begins before the command.
func (r *Report) ran() string {
	wall := r.WallSeconds
	if r.Account != nil {
		wall = r.Account.WallSeconds
	}
	return "ran " + seconds(wall) + r.Exit.suffix(r.Finished)
}

// result says what came of it.
func (r *Report) result() string {
	var parts []string
	for _, verdict := range []string{VerdictKept, VerdictUndone, VerdictFailed, VerdictUnjudged} {
		if n := settings(r.Changes, verdict); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verdict))
		}
	}
	if n := len(r.Advice); n > 0 {
		parts = append(parts, fmt.Sprintf("%d advised", n))
	}
	result := "nothing to change"
	if len(parts) > 0 {
		result = "changes: " + strings.Join(parts, ", ")
	}
	return result
}

// settings counts the changes with that verdict, the same one in several
// processes once.
func settings(changes []Change, verdict string) int {
	n := 0
	for _, g := range groupChanges(changes) {
		if g.Verdict == verdict {
			n++
		}
	}
	return n
}

// commandName returns a short name of a command.
func commandName(command []string) string {
	if len(command) == 0 {
		return "the command"
	}
	title, _, _ := strings.Cut(command[0], ": ") // "nginx: master process /usr/sbin/nginx", as servers write it
	return filepath.Base(title)
}

// suffix tells how a command ended, where that is worth a word.
func (e Exit) suffix(finished bool) string {
	switch {
	case e.Signal != "":
		return ", killed by " + e.Signal
	case e.Code != nil && *e.Code != 0:
		return fmt.Sprintf(", exit code %d", *e.Code)
	case !finished:
		return " so far"
	}
	return ""
}

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
func (p *printer) change(g *group) {
	colour := map[string]style{VerdictKept: green, VerdictUndone: yellow, VerdictFailed: red}[g.Verdict]
	text := g.what() + " in " + processes(g.processes)
	if g.AppliedSeconds != nil {
		text += " after " + seconds(*g.AppliedSeconds)
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
	if g.Verdict != VerdictKept || g.Objective == nil || g.Objective.Gain == nil {
		p.line(4, plain, "", "why: %s", g.Reason)
	}
}

// objective writes what was measured of the owner's objective.
func (p *printer) objective(o *OwnObjective) {
	switch {
	case o == nil:
	case o.Mean == nil:
		p.line(2, yellow, "objective", "%s: no value: %s", o.Name, o.Description)
	default:
		values := "values"
		if o.Values == 1 {
			values = "value"
		}
		better := ""
		if o.LowerIsBetter {
			better = "; less is better"
		}
		p.line(2, plain, "objective", "%s: %s %s on average, %d %s: %s%s", o.Name, figure(*o.Mean, 4), o.Unit, o.Values, values, o.Description, better)
	}
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
	if !o.agrees() {
		return fmt.Sprintf("%s: %s%s", o.gainText(), o.Name, p)
	}
	unit := ""
	if o.Unit != "" {
		unit = " " + o.Unit
	}
	return fmt.Sprintf("%s: %s %s → %s%s%s", o.gainText(), o.Name, o.Before.text(), o.After.text(), unit, p)
}

// agrees reports whether before and after have the ratio that the gain says: those of
// reports from before they were of the same windows do not.
func (o *Objective) agrees() bool {
	before, after := o.Before.Median, o.After.Median
	if o.LowerIsBetter {
		before, after = after, before
	}
	return o.Gain == nil || math.Abs(after-before**o.Gain) <= 1e-3*math.Abs(after) && (before != 0 || *o.Gain == 1)
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

// advice writes one recommendation.
func (p *printer) advice(a Advice) {
	gain := ""
	if a.PredictedGain > 0 {
		gain = fmt.Sprintf(", predicted %s times better", figure(a.PredictedGain, 3))
	}
	p.line(2, green, "advice", "%s %s: %s%s", a.ID, a.Tunlet, strings.Join(a.Actions, ", "), gain)
	p.line(4, plain, "", "why: %s", a.Why)
}

// tunlets writes about those that had trouble.
func (p *printer) tunlets(tunlets []Tunlet) {
	for _, t := range tunlets {
		switch {
		case t.Reason == "":
		case t.State == "running" || t.State == "stopped":
			p.line(2, yellow, "tunlet", "%s was started again%s: %s", t.Name, times(t.Restarts), t.Reason)
		default:
			p.line(2, yellow, "tunlet", "%s %s: %s", t.Name, t.State, t.Reason)
		}
	}
}

// blindGroup is processes that were not instrumented for the same reason.
type blindGroup struct {
	pids []int
	exes []string // names, each once
}

// blind writes about processes that could not be instrumented, by reason: a
// build has hundreds of them.
func (p *printer) blind(all []Process) {
	groups := map[string]*blindGroup{}
	var order []string
	for _, pr := range all {
		reason := pr.NotInstrumented
		if pr.Instrumented || reason == "" {
			continue
		}
		g := groups[reason]
		if g == nil {
			g = &blindGroup{}
			groups[reason] = g
			order = append(order, reason)
		}
		g.pids = append(g.pids, pr.PID)
		if name := exeName(pr.Exe); !slices.Contains(g.exes, name) {
			g.exes = append(g.exes, name)
		}
	}
	for _, reason := range order {
		g := groups[reason]
		p.line(2, dim, "blind", "%s (%s): %s", processes(g.pids), someOf(g.exes), reason)
	}
}

// foot writes the cost and the losses.
func (p *printer) foot(r *Report) {
	lost := "none lost"
	if n := r.Events.Lost.Total(); n > 0 {
		l := r.Events.Lost
		lost = fmt.Sprintf("%d lost (ring %d, slot %d, queue %d, bpf %d, away %d, analyzer %d, tunlet %d)",
			n, l.Ring, l.Slot, l.Queue, l.BPF, l.Away, l.Analyzer, l.Tunlet)
	}
	watched := len(r.Processes)
	noun := "processes"
	if watched == 1 {
		noun = "process"
	}
	p.line(0, dim, "attune:", "cost %s; %d %s, %d events, %s", r.cost(), watched, noun, r.Events.Received, lost)
}

// cost says what watching and tuning cost.
func (r *Report) cost() string {
	o, tunlets := r.Overhead, ""
	if o.TunletCPUSeconds > 0 {
		tunlets = fmt.Sprintf(" (tunlets %s)", seconds(o.TunletCPUSeconds))
	}
	return fmt.Sprintf("%s CPU%s, %s memory, %s in the application",
		seconds(o.CPUSeconds), tunlets, bytesText(o.MemoryPeakBytes+o.TunletMemoryBytes), seconds(o.ProbeSeconds))
}
