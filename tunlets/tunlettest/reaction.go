// SPDX-License-Identifier: Apache-2.0

package tunlettest

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/feed"
	"github.com/attune-hpc/attune/tunlets/sdk/samplefilter"
)

// point is a measure point that the tunlet asked for.
type point struct {
	spec  *attunev1.MeasurePoint
	index uint32
	// placed holds the processes in which it is in place, with the fraction
	// of a hit that is left over from the last interval.
	placed map[sdk.Handle]*float64
	// refused: there is a process in which it is not.
	refused bool
	// unanswered: there is a process in which neither has been said.
	unanswered bool
}

// one hides gRPC's call options.
func one[Q, R any](f func(context.Context, Q, ...grpc.CallOption) (R, error)) func(context.Context, Q) (R, error) {
	return func(ctx context.Context, q Q) (R, error) { return f(ctx, q) }
}

// React takes a reaction: it keeps what is in it, and places the measure
// points asked for, after all of it has been taken.
func (h *Harness) React(r *attunev1.Reaction) {
	h.tb.Helper()
	if !h.wakes.Empty() && len(r.GetProposals()) > 0 {
		h.tb.Errorf("proposes %v when it would not have been started yet: none of the conditions in its Wake has held", r.GetProposals()[0])
		h.wakes = samplefilter.Wakes{} // once is enough
	}
	h.Objectives = append(h.Objectives, r.GetObjectives()...)
	for _, p := range r.GetProposals() {
		proposed := Proposed{Proposal: p, At: h.Elapsed()}
		if h.checking {
			checkProposal(h, h.tb, proposed)
		}
		h.Proposals = append(h.Proposals, proposed)
	}
	for _, w := range r.GetWithdrawals() {
		h.Withdrawals = append(h.Withdrawals, Withdrawn{Withdrawal: w, At: h.Elapsed()})
	}
	h.Remarks = append(h.Remarks, r.GetRemarks()...)
	h.Explanations = append(h.Explanations, r.GetExplanations()...)
	for _, i := range r.GetInterests() {
		if slices.ContainsFunc(h.processes, func(p *Process) bool { return uint64(p.Handle) == i.GetProcess() }) {
			h.feed.Set(i)
		}
	}
	for _, i := range r.GetWants() {
		if slices.ContainsFunc(h.processes, func(p *Process) bool { return uint64(p.Handle) == i.GetProcess() }) {
			h.feed.SetDetails(i)
		}
	}
	for _, id := range r.GetRemovePoints() {
		h.removePoint(id)
	}
	var added []*point
	for _, p := range r.GetAddPoints() {
		added = append(added, h.addPoint(p))
	}
	for _, p := range added {
		for _, process := range h.Processes() {
			placeIn(h, p, process)
		}
	}
}

// Points lists the ids of the measure points asked for and not given back.
func (h *Harness) Points() []string { return slices.Clone(h.order) }

// Point returns a measure point asked for and not given back, else nil.
func (h *Harness) Point(id string) *attunev1.MeasurePoint {
	if p := h.points[id]; p != nil {
		return p.spec
	}
	return nil
}

func (h *Harness) addPoint(spec *attunev1.MeasurePoint) *point {
	h.tb.Helper()
	if h.lastPoint++; h.lastPoint > maxReactions {
		h.tb.Fatalf("%d measure points asked for: the tunlet asks for more whenever one is placed", h.lastPoint)
	}
	if old := h.points[spec.GetId()]; old != nil && !proto.Equal(old.spec, spec) {
		h.tb.Errorf("measure point %q is asked for while there is another one by that id: remove that before, or use another id", spec.GetId())
	}
	h.removePoint(spec.GetId())
	p := &point{spec: spec, index: h.lastPoint, placed: map[sdk.Handle]*float64{}}
	h.points[spec.GetId()] = p
	h.order = append(h.order, spec.GetId())
	h.feed.Add(p.index, spec)
	return p
}

func (h *Harness) removePoint(id string) {
	if p := h.points[id]; p != nil {
		h.feed.Remove(p.index, id)
	}
	delete(h.points, id)
	h.order = slices.DeleteFunc(h.order, func(o string) bool { return o == id })
}

// placeIn places a point in a process, if it is meant for it, and tells.
func placeIn(h *Harness, p *point, process *Process) {
	h.tb.Helper()
	if !feed.Covers(p.spec, uint64(process.Handle)) {
		return
	}
	if h.Unanswered != nil && h.Unanswered(p.spec, process) {
		p.unanswered = true
		return
	}
	s := &attunev1.PointStatus{
		Point: p.index, Process: uint64(process.Handle),
		State: attunev1.PointState_POINT_STATE_PLACED, Mechanism: h.Mechanism, CostNanos: h.CostNanos,
	}
	if h.Refuse != nil {
		s.Reason = h.Refuse(p.spec, process)
	}
	if s.Reason != "" {
		s.State, p.refused = attunev1.PointState_POINT_STATE_REFUSED, true
	} else {
		p.placed[process.Handle] = new(float64)
	}
	call(h, one(h.Client.PointChanged), &attunev1.PointChangedRequest{PointId: p.spec.GetId(), Status: s})
}

// answer places what has not been answered.
func answer(h *Harness) {
	h.tb.Helper()
	for _, id := range h.Points() {
		p := h.points[id]
		if p == nil || !p.unanswered {
			continue
		}
		p.unanswered = false
		for _, process := range h.Processes() {
			if p.placed[process.Handle] == nil {
				placeIn(h, p, process)
			}
		}
	}
}

// Hit is one hit of a measure point with delivery as records.
type Hit struct {
	// Point is its id, as the tunlet gave it.
	Point string
	// Thread and Monotonic are where and when; nanoseconds.
	Thread    int32
	Monotonic int64
	// Flags, Value and Extra are as in sdk.Record.
	Flags        uint16
	Value, Extra uint64
}

// Records delivers hits of a process, after so many that were lost. Hits of
// points that are not in place are left out, as a controller would.
func (h *Harness) Records(process *Process, lost uint64, hits ...Hit) {
	h.tb.Helper()
	n := &attunev1.NamedRecords{Process: uint64(process.Handle), Lost: lost}
	for _, hit := range hits {
		p := h.points[hit.Point]
		if p == nil || p.placed[process.Handle] == nil {
			continue
		}
		n.Records = attunev1.AppendRecord(n.Records, attunev1.Record{
			Monotonic: hit.Monotonic, Point: uint16(p.index), Flags: hit.Flags,
			Thread: uint32(hit.Thread), Value: hit.Value, Extra: hit.Extra,
		})
	}
	handEvents(h, &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{n}})
}

// SwitchOff has the overhead budget take a measure point out of a process, as
// long as SwitchOn does not put it back: there are no aggregates of it.
func (h *Harness) SwitchOff(id string, process *Process) {
	h.tb.Helper()
	switchTo(h, id, process, attunev1.PointState_POINT_STATE_OFF)
}

// SwitchOn has the overhead budget put a measure point back.
func (h *Harness) SwitchOn(id string, process *Process) {
	h.tb.Helper()
	switchTo(h, id, process, attunev1.PointState_POINT_STATE_PLACED)
}

func switchTo(h *Harness, id string, process *Process, state attunev1.PointState) {
	h.tb.Helper()
	p := h.points[id]
	if p == nil {
		h.tb.Fatalf("no measure point %q", id)
	}
	delete(p.placed, process.Handle)
	if state == attunev1.PointState_POINT_STATE_PLACED {
		p.placed[process.Handle] = new(float64)
	}
	call(h, one(h.Client.PointChanged), &attunev1.PointChangedRequest{PointId: id, Status: &attunev1.PointStatus{
		Point: p.index, Process: uint64(process.Handle), State: state, Mechanism: h.Mechanism,
		DegradedReason: "the overhead budget of the process",
	}})
}

// DetailsWanted lists the kinds of details that the tunlet wants of a process at
// present.
func (h *Harness) DetailsWanted(process *Process) (kinds []sdk.Detail) {
	for _, k := range h.feed.Details(uint64(process.Handle)) {
		kinds = append(kinds, sdk.Detail(k))
	}
	return kinds
}
