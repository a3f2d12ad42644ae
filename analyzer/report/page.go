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
