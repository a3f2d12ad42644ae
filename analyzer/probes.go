// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"

	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// OwnName is the name under which the session's own measure points appear.
const OwnName = report.OwnerName

// probes asks for the measure points that the owner named. To the session it is a tunlet that wants
// nothing else; it lives in this process.
type probes struct {
	quiet

	points []*attunev1.MeasurePoint
}

// newProbes takes what [pointtext.Parse] understands; what it does not is left
// out.
func newProbes(texts []string) *probes {
	p := &probes{}
	for _, text := range texts {
		if point, err := pointtext.Parse(text); err == nil {
			p.points = append(p.points, point.Spec)
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
