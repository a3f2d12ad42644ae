// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"
	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/internal/pointtext"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// OwnName is the name under which the session's own measure points appear.
const OwnName = "attune"

// probes asks for the measure points that the owner named. To the session it is
// a tunlet that wants nothing else; it lives in this process.
type probes struct{ points []*attunev1.MeasurePoint }

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
	return &attunev1.DescribeResponse{Name: OwnName, ApiVersion: "1", Summary: "Counts what is given with --probe."}
}

// Service implements session.Tunlet.
func (p *probes) Service() attunev1.TunletServiceClient { return p }

// Kill implements session.Tunlet; there is no process.
func (p *probes) Kill(string) {}

func (p *probes) Describe(context.Context, *attunev1.DescribeRequest, ...grpc.CallOption) (*attunev1.DescribeResponse, error) {
	return p.Info(), nil
}

func (p *probes) Configure(context.Context, *attunev1.ConfigureRequest, ...grpc.CallOption) (*attunev1.ConfigureResponse, error) {
	return &attunev1.ConfigureResponse{}, nil
}

func (p *probes) ApplicationStarted(context.Context, *attunev1.ApplicationStartedRequest, ...grpc.CallOption) (*attunev1.ApplicationStartedResponse, error) {
	return &attunev1.ApplicationStartedResponse{Reaction: &attunev1.Reaction{AddPoints: p.points}}, nil
}

func (p *probes) ProcessStarted(context.Context, *attunev1.ProcessStartedRequest, ...grpc.CallOption) (*attunev1.ProcessStartedResponse, error) {
	return &attunev1.ProcessStartedResponse{}, nil
}

func (p *probes) ProcessEnded(context.Context, *attunev1.ProcessEndedRequest, ...grpc.CallOption) (*attunev1.ProcessEndedResponse, error) {
	return &attunev1.ProcessEndedResponse{}, nil
}

func (p *probes) HandleEvents(context.Context, *attunev1.HandleEventsRequest, ...grpc.CallOption) (*attunev1.HandleEventsResponse, error) {
	return &attunev1.HandleEventsResponse{}, nil
}

func (p *probes) PointChanged(context.Context, *attunev1.PointChangedRequest, ...grpc.CallOption) (*attunev1.PointChangedResponse, error) {
	return &attunev1.PointChangedResponse{}, nil
}

func (p *probes) Tick(context.Context, *attunev1.TickRequest, ...grpc.CallOption) (*attunev1.TickResponse, error) {
	return &attunev1.TickResponse{}, nil
}

func (p *probes) Evaluate(context.Context, *attunev1.EvaluateRequest, ...grpc.CallOption) (*attunev1.EvaluateResponse, error) {
	return &attunev1.EvaluateResponse{}, nil
}

func (p *probes) ProposalChanged(context.Context, *attunev1.ProposalChangedRequest, ...grpc.CallOption) (*attunev1.ProposalChangedResponse, error) {
	return &attunev1.ProposalChangedResponse{}, nil
}

func (p *probes) ApplicationEnded(context.Context, *attunev1.ApplicationEndedRequest, ...grpc.CallOption) (*attunev1.ApplicationEndedResponse, error) {
	return &attunev1.ApplicationEndedResponse{}, nil
}
