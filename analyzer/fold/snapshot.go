// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
)

// shownProposals bounds a snapshot's proposals; see also shownObjectives.
const shownProposals = 64

// Snapshot returns the session as it stands at the given time since its start, for
// a live view. The result shares nothing with the account.
func (a *Account) Snapshot(at time.Duration) report.Snapshot {
	out := report.Snapshot{
		Seconds: at.Seconds(), Mode: a.header.Mode, Events: a.events(),
		Objectives: append(a.own.shown(), a.tunlets.objectives(at)...),
	}
	for _, p := range a.processes.order {
		if !p.ended {
			out.Processes++
		}
	}
	for _, p := range a.points.list {
		if !p.over {
			out.Points = append(out.Points, p.rates()...)
		}
	}
	for _, t := range a.tunlets.hosted {
		out.Tunlets = append(out.Tunlets, report.TunletState{Name: t.Name, State: t.State, Reason: t.Reason})
	}
	all := a.proposals.inOrder()
	for _, p := range all[max(0, len(all)-shownProposals):] {
		out.Proposals = append(out.Proposals, p.state())
	}
	return out
}
