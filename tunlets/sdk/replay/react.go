// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"slices"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// react does what the tunlet wants, in the order in which the Analyzer does.
func (d *driver) react(r *attunev1.Reaction) {
	for _, i := range r.GetInterests() {
		if d.lives(i.GetProcess()) {
			d.feed.Set(i)
		}
	}
	for _, i := range r.GetWants() {
		if d.lives(i.GetProcess()) && d.feed.SetDetails(i) {
			d.out.details(d.now, i)
		}
	}
	for _, id := range r.GetRemovePoints() {
		if d.points.remove(id) {
			d.out.line(d.now, "measures %q no more", id)
		}
	}
	for _, spec := range r.GetAddPoints() {
		d.addPoint(spec)
	}
	for _, m := range r.GetExplanations() {
		d.out.said(d.now, "explains", m)
	}
	d.out.objectives(r.GetObjectives())
	for _, w := range r.GetWithdrawals() {
		d.out.withdrawal(d.now, w)
	}
	for _, p := range r.GetProposals() {
		d.propose(p)
	}
	for _, m := range r.GetRemarks() {
		d.out.said(d.now, "remarks", m)
	}
}

func (d *driver) lives(process uint64) bool { return slices.Contains(d.order, process) }

// addPoint takes a measure point in, and tells what the recording says of it.
func (d *driver) addPoint(spec *attunev1.MeasurePoint) {
	switch added, another := d.points.add(spec); {
	case another:
		d.out.line(d.now, "is not given another %q: it has to remove that one before, or to use another id", spec.GetId())
		return
	case !added:
		return // it is there already
	}
	d.out.point(d.now, spec)
	recorded := d.outline.points[pointKey(spec)]
	if recorded == nil && len(spec.GetProcesses()) == 0 {
		d.pointChanged(spec.GetId(), refusal(0))
	}
	for _, process := range spec.GetProcesses() {
		if !recorded[process] && !recorded[0] {
			d.pointChanged(spec.GetId(), refusal(process))
		}
	}
	for _, st := range d.points.statuses(spec) {
		d.pointChanged(spec.GetId(), st)
	}
}

func refusal(process uint64) *attunev1.PointStatus {
	return &attunev1.PointStatus{
		State: attunev1.PointState_POINT_STATE_REFUSED, Process: process, Reason: "the recording does not have it",
	}
}

// propose looks for the same proposal in the recording, and tells what has
// become of it so far.
func (d *driver) propose(p *attunev1.Proposal) {
	d.out.proposal(d.now, p)
	key := proposalKey(p)
	i := slices.IndexFunc(d.outline.proposals, func(f *fate) bool { return f.as == "" && f.key == key })
	if i < 0 {
		d.tell(p.GetId(), attunev1.ProposalState_PROPOSAL_STATE_ADVISED, "the recording does not have this change", nil)
		return
	}
	f := d.outline.proposals[i]
	f.as = p.GetId()
	for _, r := range f.told {
		d.tell(f.as, r.GetState(), r.GetReason(), r.GetResults())
	}
	f.told = nil
}
