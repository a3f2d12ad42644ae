// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// probes serves the ProbeService of all sessions.
type probes struct {
	attunev1.UnimplementedProbeServiceServer

	finder *finder
}

// of returns the points of a session, as somebody reaches them: seeing a session is
// not enough to measure in its processes, which have to be theirs.
func (p probes) of(ctx context.Context, session string) (attunev1.ProbeServiceServer, error) {
	who, err := authn.PersonFrom(ctx)
	if err != nil {
		return nil, err
	}
	if session == "" {
		return nil, status.Error(codes.InvalidArgument, "no session is named")
	}
	_, h, err := p.finder.find(ctx, who, session)
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, status.Errorf(codes.FailedPrecondition, "session %s has ended", session)
	}
	return h.analyzer.Probes().For(func(uid uint32) bool { return authn.Reaches(who, uid) }), nil
}

// AddProbes implements the service.
func (p probes) AddProbes(ctx context.Context, r *attunev1.AddProbesRequest) (*attunev1.AddProbesResponse, error) {
	s, err := p.of(ctx, r.GetSession())
	if err != nil {
		return nil, err
	}
	return s.AddProbes(ctx, r)
}

// ListProbes implements the service.
func (p probes) ListProbes(ctx context.Context, r *attunev1.ListProbesRequest) (*attunev1.ListProbesResponse, error) {
	s, err := p.of(ctx, r.GetSession())
	if err != nil {
		return nil, err
	}
	return s.ListProbes(ctx, r)
}

// RemoveProbes implements the service.
func (p probes) RemoveProbes(ctx context.Context, r *attunev1.RemoveProbesRequest) (*attunev1.RemoveProbesResponse, error) {
	s, err := p.of(ctx, r.GetSession())
	if err != nil {
		return nil, err
	}
	return s.RemoveProbes(ctx, r)
}

// WatchProbes implements the service.
func (p probes) WatchProbes(r *attunev1.WatchProbesRequest, stream grpc.ServerStreamingServer[attunev1.WatchProbesResponse]) error {
	s, err := p.of(stream.Context(), r.GetSession())
	if err != nil {
		return err
	}
	return s.WatchProbes(r, stream)
}
