// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"github.com/attune-hpc/attune/internal/account"
)

// watched is how many processes there were, each once, whatever it executed.
func (r *Report) watched() (n int) {
	if a := r.Account; a != nil && a.Processes.Total != nil {
		return int(*a.Processes.Total)
	}
	for _, pr := range r.Processes {
		if !pr.ReplacedByExec {
			n++
		}
	}
	return n
}

// remain are the processes that the command has left behind.
func (r *Report) remain() (all []account.Process) {
	if r.Account == nil || !r.Finished {
		return nil
	}
	for _, process := range r.Account.Tree {
		if process.Left {
			all = append(all, process)
		}
	}
	return all
}

// left says of processes that the command has left behind that Attune has ended with it.
func (p *printer) left(r *Report) {
	var pids []int
	var names []string
	for _, process := range r.remain() {
		pids = append(pids, process.PID)
		if !slices.Contains(names, process.Name) {
			names = append(names, process.Name)
		}
	}
	if len(pids) > 0 {
		p.line(2, plain, "left", "%s (%s) went on when the command ended, and is no longer measured or tuned; `attune attach PID` goes on with one", processes(pids), someOf(names))
	}
}

// reach is what could be seen of a process: what a line says of it and why.
type reach struct{ label, reason string }

// reach says how a process was out of reach; the zero value: it was not.
func (p *printer) reach(pr *Process) reach {
	switch {
	case pr.NotInstrumented == "":
	case !pr.Instrumented:
		return reach{"blind", pr.NotInstrumented}
	case p.opts.Outside && !slices.Contains(pr.Mechanisms, "dmlib"):
		return reach{"outside", "watched from outside only: " + pr.NotInstrumented}
	}
	return reach{}
}

// outOfReach is processes that were out of reach in the same way.
type outOfReach struct {
	pids []int
	exes []string // names, each once
}

// blind writes about processes that could not be instrumented, or from outside only, by
// reason: a build has hundreds of them.
func (p *printer) blind(r *Report) {
	groups := map[reach]*outOfReach{}
	var order []reach
	left := r.remain()
	for i := range r.Processes {
		pr := &r.Processes[i]
		how := p.reach(pr)
		if how == (reach{}) || slices.ContainsFunc(left, func(l account.Process) bool { return l.PID == pr.PID }) {
			continue
		}
		g := groups[how]
		if g == nil {
			g = &outOfReach{}
			groups[how] = g
			order = append(order, how)
		}
		g.pids = append(g.pids, pr.PID)
		if name := exeName(pr.Exe); !slices.Contains(g.exes, name) {
			g.exes = append(g.exes, name)
		}
	}
	for _, how := range order {
		p.line(2, dim, how.label, "%s (%s): %s", processes(groups[how].pids), someOf(groups[how].exes), how.reason)
	}
}
