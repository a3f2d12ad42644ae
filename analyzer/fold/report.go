// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
)

// Report returns the account as a report that is made at the given time since
// the session's start.
func (a *Account) Report(at time.Duration) *report.Report {
	r := report.New()
	r.Version, r.JobID, r.Mode, r.StartedAt = a.header.Version, a.header.JobID, a.header.Mode, a.header.StartedAt
	r.Command, r.WallSeconds = append(r.Command, a.header.Command...), at.Seconds()
	r.Remarks = append(r.Remarks, a.remarks.list...)
	r.Events, r.Overhead, r.Objective = a.events(), a.overhead(), a.own.report()
	for _, p := range a.processes.order {
		r.Processes = append(r.Processes, p.report())
	}
	a.end.report(r)
	if r.Account == nil {
		r.Account = a.taken(r)
	}
	for _, t := range a.tunlets.hosted {
		t.EventsDropped = a.tunlets.lost[t.Name]
		r.Tunlets = append(r.Tunlets, t)
		r.Overhead.TunletPeakBytes = max(r.Overhead.TunletPeakBytes, t.PeakRSSBytes)
	}
	for _, p := range a.points.list {
		r.Points = append(r.Points, p.report()...)
	}
	a.reportProposals(r)
	a.omissions(r)
	return r
}

// reportProposals adds each proposal where it belongs: those that were refused when
// they came, after those that were refused later.
func (a *Account) reportProposals(r *report.Report) {
	var late []report.Refused
	for _, p := range a.proposals.inOrder() {
		switch {
		case p.GetState() == stateAdvised:
			r.Advice = append(r.Advice, a.proposals.advice(p))
		case p.GetTimes() > 0:
			late = append(late, p.refused())
		case p.GetState() == stateRefused:
			r.Refused = append(r.Refused, p.refused())
		default:
			for _, ch := range p.GetChanges() {
				r.Changes = append(r.Changes, a.proposals.change(p, ch, a.start))
			}
		}
	}
	r.Refused = slices.Concat(r.Refused, late)
}

// omissions says what there was no room for.
func (a *Account) omissions(r *report.Report) {
	note := func(n int, what string) {
		if n > 0 {
			r.Remarks = append(r.Remarks, report.Remark{Seconds: r.WallSeconds, From: report.OwnerName, Text: fmt.Sprintf("%d %s are not listed", n, what)})
		}
	}
	note(a.remarks.omitted, fmt.Sprintf("remarks after the first %d", maxRemarks/2))
	note(a.processes.omitted, "further processes that have ended")
	note(int(a.proposals.unlisted), "further proposals")
	note(a.points.omitted, "further measure points that were given back")
	steps := 0
	for _, p := range a.points.list {
		steps += p.steps.omitted
	}
	note(steps, fmt.Sprintf("steps of the overhead budget after the first %d of a measure point", maxSteps/2))
}

// events returns what came and what was lost.
func (a *Account) events() report.Events {
	e := a.counts
	e.Received = e.Records + e.Aggregates + e.Samples
	a.controllers.losses(&e.Lost)
	for _, n := range a.tunlets.lost {
		e.Lost.Tunlet += n
	}
	return e
}

// overhead adds up what the controllers say of themselves, and what the tunlets took.
func (a *Account) overhead() report.Overhead {
	o, tunlets := a.controllers.overhead(), a.tunlets.cost
	if tunlets.own > 0 { // more than the controller could say before it ended
		o.ControllerCPUSeconds = tunlets.own.Seconds()
	}
	o.TunletCPUSeconds, o.TunletMemoryBytes = tunlets.cpu.Seconds(), tunlets.memory
	o.CPUSeconds = o.ControllerCPUSeconds + o.TunletCPUSeconds
	return o
}
