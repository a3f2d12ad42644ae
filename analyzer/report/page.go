// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	_ "embed" // the page's form
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/digest"
	"github.com/attune-hpc/attune/internal/flame"
	"github.com/attune-hpc/attune/internal/htmlpage"
	"github.com/attune-hpc/attune/internal/quantity"
)

//go:embed page.html
var pageForm string

// form is the page, filled in by a page. What others chose is escaped by html/template.
var form = template.Must(template.New("report").Funcs(htmlpage.Functions()).Funcs(template.FuncMap{
	"seconds": quantity.Seconds,
	"day":     func(t time.Time) string { return t.Local().Format(time.DateTime) },
	"secondsOf": func(s *float64) string {
		if s == nil {
			return "–"
		}
		return quantity.Seconds(*s)
	},
	"bytesOf": func(n *uint64) string {
		if n == nil {
			return "–"
		}
		return quantity.Bytes(float64(*n))
	},
}).Parse(pageForm + flame.Form))

// page is what its form asks for.
type page struct {
	*Report
	Name, Ended, Result, Command, Own, Host, Took, Worst, Bounded, Foot string
	Used, Spent                                                         []digest.Bar
	Directive, Troubles                                                 []string
	Charts                                                              []chart
	Marks                                                               []htmlpage.Mark
	Rows                                                                []changeRow
	Processes                                                           []account.Process
	MoreProcesses                                                       uint64
	Numbers                                                             []pageNumber
	Missing                                                             map[string]string
	Flames                                                              []*flame.Graph
}

// pageNumber is a number of the account.
type pageNumber struct{ Name, Value, Accuracy, Source, Help string }

// pageProcesses is how many processes the page has.
const pageProcesses = 20

// EncodeHTML writes the report as one page for a browser, which needs nothing else and runs
// nothing. Without an account it is a page of what was changed.
func (r *Report) EncodeHTML(w io.Writer) error {
	p := &page{
		Report: r, Name: commandName(r.Command), Ended: r.ran(), Result: sentence(r.result()),
		Command: strings.Join(r.Command, " "), Own: r.Objective.text(), Foot: r.foot(),
	}
	for _, t := range r.Tunlets {
		if trouble := t.trouble(); trouble != "" {
			p.Troubles = append(p.Troubles, trouble)
		}
	}
	p.rows()
	p.addFlames()
	if a := r.Account; a != nil {
		p.Used, p.Spent, p.Worst, p.Bounded, p.Directive = digest.Used(a), digest.Spent(a), digest.Worst(a), digest.Bounded(a), digest.Directive(a)
		p.Host, p.Missing, p.Took = a.Host.Name, a.Missing, digest.Took(a)
		p.Charts = p.charts(a)
		p.addProcesses(a)
		p.addNumbers(a)
	}
	if err := htmlpage.Write(w, form, p); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// sentence begins with a capital letter.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// addProcesses adds the processes that took most, where that is known.
func (p *page) addProcesses(a *account.Account) {
	for _, process := range a.Tree {
		if process.CPUSeconds != nil {
			p.Processes = append(p.Processes, process)
		}
	}
	slices.SortStableFunc(p.Processes, func(a, b account.Process) int { return cmp.Compare(*b.CPUSeconds, *a.CPUSeconds) })
	p.Processes = p.Processes[:min(len(p.Processes), pageProcesses)]
	if total := a.Processes.Total; total != nil && len(p.Processes) > 0 {
		p.MoreProcesses = *total - min(*total, uint64(len(p.Processes)))
	}
}

// addNumbers adds all numbers of the account that are known.
func (p *page) addNumbers(a *account.Account) {
	for _, f := range account.Fields() {
		if value, known := a.Number(f.Name); known && f.Numeric && !strings.Contains(f.Name, "[]") {
			p.Numbers = append(p.Numbers, pageNumber{f.Name, quantity.Field(f.Name, value), string(a.Accuracy[f.Name]), a.Sources[f.Name], f.Help})
		}
	}
}

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

// addFlames draws the points of the owner that have stacks for keys: their times or
// sums, or their hits.
func (p *page) addFlames() {
	for i := range p.Points {
		pt := &p.Points[i]
		if pt.Tunlet != OwnerName || len(pt.Keys) == 0 || pt.Keys[0].Stack == nil {
			continue
		}
		g := &flame.Graph{Title: pt.ID, Show: func(n uint64) string { return fmt.Sprintf("%d hits", n) }}
		summed := pt.Value != nil
		for _, row := range pt.Keys {
			_, unsigned := row.sum()
			summed = summed && unsigned
		}
		if summed {
			g.Show = func(n uint64) string { return valueText(Value{n}, pt.Value.Unit, false) + " of " + pt.Value.Name }
		}
		for _, row := range pt.Keys {
			weight := row.Hits
			if summed {
				weight, _ = row.sum()
			}
			g.Stacks = append(g.Stacks, flame.Stack{Frames: row.Stack, Weight: weight})
		}
		if pt.Rest != nil {
			g.Missing = fmt.Sprintf("Not drawn: %d hits in other stacks, for which there was no room; keys N makes room for more.", pt.Rest.Hits)
		}
		p.Flames = append(p.Flames, g)
	}
}

// sum of the values of a key; false where there is none that can be drawn.
func (r *KeyRow) sum() (uint64, bool) {
	if r.Value == nil {
		return 0, false
	}
	n, ok := r.Value.Sum.v.(uint64)
	return n, ok
}
