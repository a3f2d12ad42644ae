// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/report"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// The limits of a snapshot's lists.
const (
	shownObjectives = 64
	shownProposals  = 64
	shownRemarks    = 16
)

// Snapshot returns the session as it stands, for a live view. Tunlets is left
// to the caller.
func (s *Session) Snapshot(ctx context.Context) (report.Snapshot, error) {
	return ask(ctx, s, s.snapshot)
}

// snapshot collects it.
func (s *Session) snapshot() report.Snapshot {
	out := report.Snapshot{
		Seconds: s.now().Seconds(), Mode: s.cfg.Core.Mode.String(), Events: s.eventCounts(),
		EndedProcesses: s.omitted,
		Remarks:        slices.Clone(s.remarks[max(0, len(s.remarks)-shownRemarks):]),
	}
	for _, p := range s.order {
		if p.ended {
			out.EndedProcesses++
			continue
		}
		out.Processes = append(out.Processes, p.state())
	}
	for _, p := range s.points.list {
		out.Points = append(out.Points, p.rates()...)
	}
	for _, t := range s.tunlets {
		out.Objectives = append(out.Objectives, t.objectiveValues()...)
	}
	slices.SortFunc(out.Objectives, func(a, b report.ObjectiveValue) int {
		return cmp.Or(cmp.Compare(a.Tunlet, b.Tunlet), cmp.Compare(a.Scope, b.Scope))
	})
	out.Objectives = limit(out.Objectives, shownObjectives)
	for _, v := range append(s.core.Refusals(), s.core.Proposals()...) {
		out.Proposals = append(out.Proposals, proposalState(v))
	}
	slices.SortStableFunc(out.Proposals, func(a, b report.ProposalState) int { return cmp.Compare(a.Seconds, b.Seconds) })
	out.Proposals = out.Proposals[max(0, len(out.Proposals)-shownProposals):]
	return out
}

// state returns a running process as the live view has it.
func (p *process) state() report.ProcessState {
	out := report.ProcessState{PID: p.pid(), Rank: -1, Exe: p.info.GetExecutable()}
	if rank := p.rank(); rank != nil {
		out.Rank = *rank
	}
	for _, m := range p.info.GetMechanisms() {
		if m.GetAvailable() {
			out.Mechanisms = append(out.Mechanisms, m.GetName())
		}
	}
	return out
}

// rates returns a point as the live view has it, once per tunlet.
func (p *point) rates() []report.PointRate {
	placed, mechanism := 0, ""
	for _, st := range p.status {
		if st.GetState() == attunev1.PointState_POINT_STATE_PLACED {
			placed++
			mechanism = st.GetMechanism()
		}
	}
	var out []report.PointRate
	for _, sub := range p.subscribers {
		out = append(out, report.PointRate{
			Tunlet: sub.tunlet.name, ID: sub.id, Target: targetText(p.spec),
			Mechanism: mechanism, Processes: placed, PerSecond: p.rate,
		})
	}
	return out
}

// objectiveValues returns the latest values of a tunlet's objective.
func (t *tunlet) objectiveValues() []report.ObjectiveValue {
	var out []report.ObjectiveValue
	for scope, v := range t.objectives {
		out = append(out, report.ObjectiveValue{
			Tunlet: t.name, Name: t.info.GetObjective().GetName(), Unit: t.info.GetObjective().GetUnit(),
			Scope: scope, Value: v,
		})
	}
	return out
}

// proposalState returns a proposal as the live view has it.
func proposalState(v core.ProposalView) report.ProposalState {
	out := report.ProposalState{
		Tunlet: v.Tunlet, ID: v.ID, State: v.State.String(), Seconds: v.ProposedAt.Seconds(), Reason: v.Reason,
	}
	processes := map[uint64]bool{}
	for _, ch := range v.Changes {
		processes[ch.Process] = true
		if !slices.Contains(out.Knobs, ch.Knob) {
			out.Knobs = append(out.Knobs, ch.Knob)
		}
	}
	out.Processes = len(processes)
	if v.Judgement != nil && !math.IsInf(v.Judgement.Gain, 0) {
		out.Gain = v.Judgement.Gain
	}
	return out
}
