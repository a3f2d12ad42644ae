// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/digest"
	"github.com/attune-hpc/attune/internal/printable"
)

// tookSeconds is how long a command must have run for its account to be told: of a shorter
// one, two lines are enough.
const tookSeconds = 1

// intoCommand is a time since the session's start as one since the command's, with which a
// reader compares it: the session begins before the command.
func (r *Report) intoCommand(seconds float64) float64 {
	if r.Account == nil {
		return seconds
	}
	return seconds - r.Account.Start.Sub(r.StartedAt).Seconds()
}

// nothingChanged says whether nothing came of the tuning.
func (r *Report) nothingChanged() bool {
	return len(r.Advice) == 0 && !slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Verdict == VerdictKept })
}

// took writes what the command took beside what it could have, and where nothing was to be
// changed, what it did with its time.
func (p *printer) took(r *Report) {
	a := r.Account
	if a == nil || a.WallSeconds < tookSeconds {
		return
	}
	for _, b := range digest.Used(a) {
		p.bar(b.Name, b, b.Text)
	}
	if took := digest.Took(a); took != "" {
		p.line(2, plain, "took", "%s", took)
	}
	if worst := digest.Worst(a); worst != "" {
		p.line(2, plain, "worst", "%s", worst)
	}
	if r.nothingChanged() {
		label := "spent"
		for _, b := range digest.Spent(a) {
			p.bar(label, b, b.Name+", "+b.Text)
			label = ""
		}
		if bounded := digest.Bounded(a); bounded != "" {
			p.line(2, plain, "bound by", "%s", bounded)
		}
	}
	if lines := digest.Directive(a); lines != nil {
		p.line(2, green, "next time", "ask for less, if it is like this time:")
		for _, line := range lines { // to be pasted: not wrapped
			fmt.Fprintf(&p.buf, "%*s%s\n", labelWidth+3, "", printable.Line(line))
		}
	}
}

// bar writes a label, a bar, and what it says.
func (p *printer) bar(label string, b digest.Bar, text string) {
	before := fmt.Sprintf("  %-*s %s ", labelWidth, label, b)
	p.buf.WriteString(before)
	start := len([]rune(before))
	for i, part := range wrap(text, p.opts.Width-start) {
		if i > 0 {
			p.buf.WriteString(strings.Repeat(" ", start))
		}
		p.buf.WriteString(printable.Line(part) + "\n")
	}
}
