// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/quantity"
)

// TextOptions configures WriteText. The zero value is usable.
type TextOptions struct {
	// Color allows terminal colours.
	Color bool
	// Width is the terminal's width in columns; 0: lines are not wrapped.
	Width int
	// Outside tells of processes that could be watched from outside only, too: all others are
	// entered at their start.
	Outside bool
}

// WriteText writes the report for people: two lines for a command that ran for less than
// a second if nothing was changed, advised or wrong, and a few more otherwise.
func (r *Report) WriteText(w io.Writer, opts TextOptions) error {
	p := &printer{opts: opts}
	p.head(r)
	groups := groupChanges(r.Changes)
	for i, g := range groups {
		p.change(r, g)
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
	p.points(r)
	p.tunlets(r.Tunlets)
	p.blind(r)
	p.left(r)
	p.notes(r.Remarks)
	p.took(r)
	p.line(0, dim, "attune:", "cost %s", r.foot())
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
		p.buf.WriteString(printable.Line(part) + "\n")
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
	return "ran " + quantity.Seconds(wall) + r.Exit.suffix(r.Finished)
}

// result says what came of it.
func (r *Report) result() string {
	var parts []string
	for _, verdict := range []string{VerdictKept, VerdictUndone, VerdictRefused, VerdictFailed, VerdictUnjudged} {
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

// advice writes one recommendation.
func (p *printer) advice(a Advice) {
	p.line(2, green, "advice", "%s %s: %s%s", a.ID, a.Tunlet, strings.Join(a.Actions, ", "), predicted(a.PredictedGain))
	p.line(4, plain, "", "why: %s", a.Why)
}

// tunlets writes about those that had trouble.
func (p *printer) tunlets(tunlets []Tunlet) {
	for _, t := range tunlets {
		if trouble := t.trouble(); trouble != "" {
			p.line(2, yellow, "tunlet", "%s", trouble)
		}
	}
}

// trouble says what trouble a tunlet had; empty: none. That one had not answered yet is none: at the
// first run after an installation each is asked what it is, and one that hangs is ended after 5 s.
func (t Tunlet) trouble() string {
	switch {
	case t.Reason == "", t.State == "starting" && t.Restarts == 0:
		return ""
	case t.State == "running" || t.State == "stopped":
		return fmt.Sprintf("%s was started again%s: %s", t.Name, times(t.Restarts), t.Reason)
	}
	return fmt.Sprintf("%s %s: %s", t.Name, t.State, t.Reason)
}

// foot says what Attune took, and what it has lost.
func (r *Report) foot() string {
	lost := "none lost"
	if n := r.Events.Lost.Total(); n > 0 {
		l := r.Events.Lost
		lost = fmt.Sprintf("%d lost (ring %d, slot %d, queue %d, bpf %d, away %d, analyzer %d, tunlet %d)",
			n, l.Ring, l.Slot, l.Queue, l.BPF, l.Away, l.Analyzer, l.Tunlet)
	}
	return fmt.Sprintf("%s; %s, %s, %s", r.cost(), quantity.Count(r.watched(), "process", "processes"),
		quantity.Count(r.Events.Received, "event", "events"), lost)
}

// cost says what watching and tuning cost.
func (r *Report) cost() string {
	o, tunlets := r.Overhead, ""
	if o.TunletCPUSeconds > 0 {
		tunlets = fmt.Sprintf(" (tunlets %s)", quantity.Seconds(o.TunletCPUSeconds))
	}
	return fmt.Sprintf("%s CPU%s, %s memory, %s in the application",
		quantity.Seconds(o.CPUSeconds), tunlets, quantity.Bytes(float64(o.MemoryPeakBytes+o.TunletMemoryBytes)), quantity.Seconds(o.ProbeSeconds))
}

// notes writes remarks, those that are the same of several processes once.
func (p *printer) notes(remarks []Remark) {
	count := map[string]int{}
	for _, m := range remarks {
		count[m.From+": "+m.Text]++
	}
	for _, m := range remarks {
		text := m.From + ": " + m.Text
		if n := count[text]; n > 0 {
			p.line(2, dim, "note", "%s%s", text, times(n))
			delete(count, text)
		}
	}
}
