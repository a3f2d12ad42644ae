// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"cmp"
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
)

// The limits of a snapshot's lists.
const (
	shownObjectives = 64
	shownProposals  = 64
	shownRemarks    = 16
)

// Snapshot returns the session as it stands at the given time since its start, for
// a live view. The result shares nothing with the account.
func (a *Account) Snapshot(at time.Duration) report.Snapshot {
	out := report.Snapshot{
		Seconds: at.Seconds(), Mode: a.header.Mode, Events: a.events(), EndedProcesses: a.omitted,
		Remarks:    slices.Clone(a.remarks[max(0, len(a.remarks)-shownRemarks):]),
		Objectives: a.latestObjectives(),
	}
	for _, p := range a.order {
		if p.ended {
			out.EndedProcesses++
			continue
		}
		out.Processes = append(out.Processes, p.state())
	}
	for _, p := range a.points.list {
		if !p.over {
			out.Points = append(out.Points, p.rates()...)
		}
	}
	for _, t := range a.hosted {
		out.Tunlets = append(out.Tunlets, report.TunletState{Name: t.Name, State: t.State, Reason: t.Reason})
	}
	all := a.inOrder()
	for _, p := range all[max(0, len(all)-shownProposals):] {
		out.Proposals = append(out.Proposals, p.state())
	}
	return out
}

// latestObjectives returns the first of the latest values of all objectives.
func (a *Account) latestObjectives() (out []report.ObjectiveValue) {
	for name, t := range a.tunlets {
		for scope, v := range t.latest {
			out = append(out, report.ObjectiveValue{
				Tunlet: name, Name: t.objective.GetName(), Unit: t.objective.GetUnit(), Scope: scope, Value: v,
			})
		}
	}
	slices.SortFunc(out, func(a, b report.ObjectiveValue) int {
		return cmp.Or(cmp.Compare(a.Tunlet, b.Tunlet), cmp.Compare(a.Scope, b.Scope))
	})
	return out[:min(len(out), shownObjectives)]
}
