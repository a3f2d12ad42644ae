// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"log/slog"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/analyzer/session"
	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// asks asks the session for what the owner, and what writes things down for them, are to see.
type asks struct {
	session *session.Session
	log     *slog.Logger
}

// ask asks for what the session's own sinks are to see.
func (a asks) ask(ctx context.Context, name string, want *attunev1.Want) {
	a.askFor(ctx, name, nil, want)
}

// askFor asks for what a sink is to see.
func (a asks) askFor(ctx context.Context, name string, sink session.Sink, want *attunev1.Want) {
	if err := a.session.Ask(ctx, name, sink, func() (*attunev1.Want, error) { return want, nil }); err != nil {
		a.log.Warn("not everything is measured", "asker", name, "error", err)
	}
}

// ownPoints are the measure points of the owner; what [pointtext.Parse] does not
// understand is left out.
func ownPoints(texts []string) *attunev1.Want {
	want := &attunev1.Want{}
	for _, text := range texts {
		if point, err := pointtext.Parse(text); err == nil {
			want.Points = append(want.Points, &attunev1.PointWant{Point: point.Spec})
		}
	}
	return want
}

// askObjective has the session measure the point whose hits are the owner's objective.
func (a asks) askObjective(ctx context.Context, point *attunev1.MeasurePoint) {
	want := &attunev1.Want{Points: []*attunev1.PointWant{{Point: point}}}
	a.askFor(ctx, report.ObjectiveAsker, &hitRate{measured: a.session.Measured}, want)
}

// hitRate makes values of the owner's objective of the hits of a point. It belongs to the session's
// loop.
type hitRate struct {
	measured func(value float64, end time.Time)
	index    uint32 // of the point; 0: there is none
	hit      bool   // once at least: what comes before is not of the objective
}

// Take implements session.Sink.
func (h *hitRate) Take(f *attunev1.RecordingFrame) {
	switch k := f.GetWhat().(type) {
	case *attunev1.RecordingFrame_Asked:
		if k.Asked.GetAsker() == report.ObjectiveAsker && !k.Asked.GetOver() {
			h.index = k.Asked.GetPoint()
		}
	case *attunev1.RecordingFrame_Aggregates:
		h.count(k.Aggregates)
	}
}

// count adds up the hits of an interval, over all processes. Where the point is nowhere
// served there are none to add up: that is not known, and not zero.
func (h *hitRate) count(b *attunev1.AggregateBatch) {
	hits, served := uint64(0), false
	for _, one := range b.GetAggregates() {
		if one.GetPoint() == h.index {
			hits, served = hits+one.GetCount(), true
		}
	}
	h.hit = h.hit || hits > 0
	seconds := time.Duration(b.GetToUnixNano() - b.GetFromUnixNano()).Seconds()
	if served && h.hit && seconds > 0 {
		h.measured(float64(hits)/seconds, time.Unix(0, b.GetToUnixNano()))
	}
}
