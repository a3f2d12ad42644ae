// SPDX-License-Identifier: Apache-2.0

package analyzer

import (
	"context"

	"google.golang.org/grpc"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// quiet answers every call to a tunlet with nothing. The session's own tunlets,
// which live in this process, embed it.
type quiet struct{}

// Kill implements session.Tunlet; there is no process.
func (quiet) Kill(string) {}

func (quiet) Describe(context.Context, *attunev1.DescribeRequest, ...grpc.CallOption) (*attunev1.DescribeResponse, error) {
	return &attunev1.DescribeResponse{}, nil
}

func (quiet) Configure(context.Context, *attunev1.ConfigureRequest, ...grpc.CallOption) (*attunev1.ConfigureResponse, error) {
	return &attunev1.ConfigureResponse{}, nil
}

func (quiet) ApplicationStarted(context.Context, *attunev1.ApplicationStartedRequest, ...grpc.CallOption) (*attunev1.ApplicationStartedResponse, error) {
	return &attunev1.ApplicationStartedResponse{}, nil
}

func (quiet) ProcessStarted(context.Context, *attunev1.ProcessStartedRequest, ...grpc.CallOption) (*attunev1.ProcessStartedResponse, error) {
	return &attunev1.ProcessStartedResponse{}, nil
}

func (quiet) ProcessEnded(context.Context, *attunev1.ProcessEndedRequest, ...grpc.CallOption) (*attunev1.ProcessEndedResponse, error) {
	return &attunev1.ProcessEndedResponse{}, nil
}

func (quiet) HandleEvents(context.Context, *attunev1.HandleEventsRequest, ...grpc.CallOption) (*attunev1.HandleEventsResponse, error) {
	return &attunev1.HandleEventsResponse{}, nil
}

func (quiet) PointChanged(context.Context, *attunev1.PointChangedRequest, ...grpc.CallOption) (*attunev1.PointChangedResponse, error) {
	return &attunev1.PointChangedResponse{}, nil
}

func (quiet) Tick(context.Context, *attunev1.TickRequest, ...grpc.CallOption) (*attunev1.TickResponse, error) {
	return &attunev1.TickResponse{}, nil
}

func (quiet) Evaluate(context.Context, *attunev1.EvaluateRequest, ...grpc.CallOption) (*attunev1.EvaluateResponse, error) {
	return &attunev1.EvaluateResponse{}, nil
}

func (quiet) ProposalChanged(context.Context, *attunev1.ProposalChangedRequest, ...grpc.CallOption) (*attunev1.ProposalChangedResponse, error) {
	return &attunev1.ProposalChangedResponse{}, nil
}

func (quiet) ApplicationEnded(context.Context, *attunev1.ApplicationEndedRequest, ...grpc.CallOption) (*attunev1.ApplicationEndedResponse, error) {
	return &attunev1.ApplicationEndedResponse{}, nil
}
