// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/htmlpage"
	"github.com/attune-hpc/attune/internal/quantity"
)

// Size of the charts over time, in their own units.
const (
	chartWidth  = 960
	chartHeight = 120
)

// chart is something over time.
type chart struct {
	Title   string
	Picture template.HTML
	Text    string
}

// changeRow is a change, in one or more processes, in the table.
type changeRow struct{ Lines, After, Tunlet, What, Of, Verdict, Outcome string }

// rows makes the rows of the changes, and the marks of those that were made.
func (p *page) rows() {
	for _, g := range groupChanges(p.Changes) {
		row := changeRow{Tunlet: g.Tunlet, What: g.what(), Of: processes(g.processes), Verdict: g.Verdict, Outcome: g.Reason}
		if g.Objective != nil {
			row.Outcome = g.Objective.text()
		}
		var lines []string
		mark := func(at *float64, what string) {
			if at == nil {
				return
			}
			n := len(p.Marks) + 1
			p.Marks = append(p.Marks, htmlpage.Mark{Seconds: p.intoCommand(*at), Number: n, Text: fmt.Sprintf("%s: %s %s", g.Tunlet, row.What, what)})
			lines = append(lines, fmt.Sprint(n))
		}
		mark(g.AppliedSeconds, "made")
		mark(g.UndoneSeconds, "taken back")
		if row.Lines = strings.Join(lines, ", "); g.AppliedSeconds != nil {
			row.After = quantity.Seconds(p.intoCommand(*g.AppliedSeconds))
		}
		p.Rows = append(p.Rows, row)
	}
}

// what says what a change changes.
func (g *group) what() string {
	if !g.Old.Known() && !g.New.Known() {
		return g.Action
	}
	return fmt.Sprintf("%s %s → %s", g.Knob, g.Old, g.New)
}

// charts draws how it went, with the changes.
func (p *page) charts(a *account.Account) []chart {
	if len(a.History) < 2 {
		return nil
	}
	cores := htmlpage.Over{Width: chartWidth, Height: chartHeight, Seconds: a.WallSeconds, Marks: p.Marks}
	memory := cores
	for _, m := range a.History {
		at := "until " + quantity.Seconds(m.Seconds) + ": "
		cores.Top, memory.Top = max(cores.Top, m.Cores), max(memory.Top, float64(m.Resident))
		cores.Steps = append(cores.Steps, htmlpage.Step{End: m.Seconds, Value: m.Cores, Text: fmt.Sprintf("%s%.2f cores", at, m.Cores)})
		memory.Steps = append(memory.Steps, htmlpage.Step{End: m.Seconds, Value: float64(m.Resident), Text: at + quantity.Bytes(float64(m.Resident))})
	}
	draw := func(title string, o htmlpage.Over, text string) chart {
		return chart{title, o.Draw(title + " over time: " + text), text}
	}
	return []chart{
		draw("Cores busy", cores, fmt.Sprintf("from 0 to %s; up to %.2f", quantity.Seconds(a.WallSeconds), cores.Top)),
		draw("Resident memory", memory, "from 0 to "+quantity.Seconds(a.WallSeconds)+"; up to "+quantity.Bytes(memory.Top)+"; pages that several processes share count for each"),
	}
}
