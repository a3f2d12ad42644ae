// SPDX-License-Identifier: Apache-2.0

package report

import "slices"

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
