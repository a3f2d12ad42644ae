// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// OwnName is the name under which the session's own measure points appear.
const OwnName = "attune"

// probes asks for the measure points that the owner named, and keeps account of
// what their single hits captured. To the session it is a tunlet that wants
// nothing else; it lives in this process.
type probes struct {
	quiet

	points []*attunev1.MeasurePoint

	mu      sync.Mutex // guards what follows; a leaf lock
	tallies map[string]*tally
	byIndex map[uint32][]*tally // an index is given anew only after a while
}

// newProbes takes what [pointtext.Parse] understands; what it does not is left
// out.
func newProbes(texts []string) *probes {
	p := &probes{tallies: make(map[string]*tally), byIndex: make(map[uint32][]*tally)}
	for _, text := range texts {
		if point, err := pointtext.Parse(text); err == nil {
			p.points = append(p.points, point.Spec)
			p.tallies[point.Spec.GetId()] = newTally(point)
		}
	}
	return p
}

// Info implements session.Tunlet.
func (p *probes) Info() *attunev1.DescribeResponse {
	return &attunev1.DescribeResponse{Name: OwnName, ApiVersion: "1", Summary: "Measures what is given with --probe."}
}

// Service implements session.Tunlet.
func (p *probes) Service() attunev1.TunletServiceClient { return p }

func (p *probes) ApplicationStarted(context.Context, *attunev1.ApplicationStartedRequest, ...grpc.CallOption) (*attunev1.ApplicationStartedResponse, error) {
	return &attunev1.ApplicationStartedResponse{Reaction: &attunev1.Reaction{AddPoints: p.points}}, nil
}

// PointChanged learns by what index records name a point.
func (p *probes) PointChanged(_ context.Context, r *attunev1.PointChangedRequest, _ ...grpc.CallOption) (*attunev1.PointChangedResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.tallies[r.GetPointId()]; t != nil && r.GetStatus().GetPoint() != 0 {
		index := r.GetStatus().GetPoint()
		others := slices.DeleteFunc(p.byIndex[index], func(o *tally) bool { return o == t || !alike(o.point.Spec, t.point.Spec) })
		p.byIndex[index] = append(others, t)
	}
	return &attunev1.PointChangedResponse{}, nil
}

// alike says whether points differ in their names only: they then share an index.
func alike(a, b *attunev1.MeasurePoint) bool {
	a, b = proto.CloneOf(a), proto.CloneOf(b)
	a.Id, b.Id = "", ""
	return proto.Equal(a, b)
}

// HandleEvents takes single hits; what is summed up the session keeps itself.
func (p *probes) HandleEvents(_ context.Context, r *attunev1.HandleEventsRequest, _ ...grpc.CallOption) (*attunev1.HandleEventsResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, records := range r.GetRecords() {
		for r := range attunev1.AllRecords(records.GetRecords()) {
			for _, t := range p.byIndex[uint32(r.Point)] {
				t.add(r)
			}
		}
	}
	return &attunev1.HandleEventsResponse{}, nil
}

// report adds what was captured to the points that it belongs to.
func (p *probes) report(points []report.Point) {
	p.mu.Lock()
	defer p.mu.Unlock()
	told := make(map[string]bool)
	for i := range points {
		at := &points[i]
		if t := p.tallies[at.ID]; t != nil && at.Tunlet == OwnName && !told[at.ID] {
			at.Captures, told[at.ID] = t.report(), true
		}
	}
}
