// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/logging"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// stopPatience is how long StopSession waits for the end.
const stopPatience = endPatience + dismissPatience + 5*time.Second

// locatePatience is how long nodes may take to say what they have.
const locatePatience = time.Second

// sessions serves the SessionService, to all that ask at a time.
type sessions struct {
	attunev1.UnimplementedSessionServiceServer

	finder
	orders orders
	claims *claims
	log    *slog.Logger
}

// StartSession implements the service.
func (s *sessions) StartSession(ctx context.Context, q *attunev1.StartSessionRequest) (*attunev1.StartSessionResponse, error) {
	who, err := authn.PrincipalFrom(ctx) // nodes tell of what was handed over to them
	if err != nil {
		return nil, err
	}
	r, err := s.orders.order(who, q.GetRegistration())
	if err != nil {
		return nil, err
	}
	if err := s.registry.PutRegistration(ctx, r); err != nil {
		return nil, status.Errorf(codes.Unavailable, "the registry does not take it: %v", err)
	}
	s.log.Info("registered", "registration", r.GetId(), "owner", r.GetOwner().GetName(), logging.UserKey, r.GetOwner().GetUid(), "executable", r.GetExecutable(), "mode", r.GetMode())
	s.claims.claim(r.GetId(), 0) // whoever asked is waiting for it
	return &attunev1.StartSessionResponse{Registration: r}, nil
}

// StopSession implements the service.
func (s *sessions) StopSession(ctx context.Context, q *attunev1.StopSessionRequest) (*attunev1.StopSessionResponse, error) {
	who, err := authn.PersonFrom(ctx)
	if err != nil {
		return nil, err
	}
	if r := s.table.registrations()[q.GetId()]; r != nil {
		return s.stopRegistration(ctx, who, r, q.GetKeep())
	}
	_, h, err := s.find(ctx, who, q.GetId())
	if err != nil {
		return nil, err
	}
	if h == nil || !h.leaveAlone() {
		return nil, status.Errorf(codes.FailedPrecondition, "session %s has ended", q.GetId())
	}
	h.stop(ending{reason: "stopped by " + who.GetName(), keep: q.GetKeep()})
	records, err := await(ctx, []*hosted{h})
	return &attunev1.StopSessionResponse{Sessions: records}, err
}

// stopRegistration withdraws a registration with its sessions.
func (s *sessions) stopRegistration(ctx context.Context, who *attunev1.Principal, r *attunev1.Registration, keep bool) (*attunev1.StopSessionResponse, error) {
	id := r.GetId()
	if !concerns(who, r) {
		return nil, notFound(id)
	}
	if ofConfiguration(r) {
		return nil, status.Errorf(codes.FailedPrecondition, "registration %s is in the Analyzer's configuration: take it out there", id)
	}
	if s.table.owner(id) == nil {
		if err := s.elsewhere(id); err != nil {
			return nil, err
		}
	}
	list := s.table.hostedOf(id)
	for _, h := range list { // before the registry tells that it is withdrawn, which keeps nothing
		h.stop(ending{reason: "its registration was withdrawn by " + who.GetName(), keep: keep})
	}
	if err := s.registry.DeleteRegistration(ctx, id); err != nil {
		return nil, status.Errorf(codes.Unavailable, "the registry does not take it back: %v", err)
	}
	records, err := await(ctx, list)
	return &attunev1.StopSessionResponse{Registration: r, Sessions: records}, err
}

// await waits for the end of sessions and returns their records.
func await(ctx context.Context, list []*hosted) (records []*attunev1.SessionRecord, err error) {
	ctx, cancel := context.WithTimeout(ctx, stopPatience)
	defer cancel()
	for _, h := range list {
		select {
		case <-h.done:
		case <-ctx.Done():
			return records, status.Errorf(codes.DeadlineExceeded, "session %s is still ending", h.snapshot().GetId())
		}
		records = append(records, h.snapshot())
	}
	return records, nil
}

// ListSessions implements the service.
func (s *sessions) ListSessions(ctx context.Context, q *attunev1.ListSessionsRequest) (*attunev1.ListSessionsResponse, error) {
	who, err := authn.PersonFrom(ctx)
	if err != nil {
		return nil, err
	}
	records, _, err := s.records(ctx)
	if err != nil {
		return nil, err
	}
	if q.GetEnded() {
		records = s.withKept(records)
	}
	registrations, err := s.table.awaitRegistrations(ctx)
	if err != nil {
		return nil, err
	}
	out := &attunev1.ListSessionsResponse{}
	for _, r := range registrations {
		if concerns(who, r) {
			out.Registrations = append(out.Registrations, r)
		}
	}
	for _, r := range records {
		ended := r.GetState() == attunev1.SessionState_SESSION_STATE_ENDED
		if (q.GetEnded() || !ended) && concernsSession(who, r, registrations[r.GetRegistration()]) {
			out.Sessions = append(out.Sessions, r)
		}
	}
	slices.SortFunc(out.Registrations, func(a, b *attunev1.Registration) int { return strings.Compare(a.GetId(), b.GetId()) })
	slices.SortFunc(out.Sessions, func(a, b *attunev1.SessionRecord) int { // the newest last
		return cmp.Or(cmp.Compare(a.GetStartedUnixNano(), b.GetStartedUnixNano()), strings.Compare(a.GetId(), b.GetId()))
	})
	return out, nil
}

// ShowSession implements the service.
func (s *sessions) ShowSession(ctx context.Context, q *attunev1.ShowSessionRequest) (*attunev1.ShowSessionResponse, error) {
	who, err := authn.PersonFrom(ctx)
	if err != nil {
		return nil, err
	}
	record, h, err := s.find(ctx, who, q.GetId())
	if err != nil {
		return nil, err
	}
	if h != nil {
		return h.show()
	}
	text, err := s.reports.get(record)
	switch {
	case errors.Is(err, errNoReport): // it is another Analyzer's, or too old
		return &attunev1.ShowSessionResponse{Session: record}, nil
	case err != nil:
		return nil, status.Errorf(codes.Internal, "read the report: %v", err)
	}
	return &attunev1.ShowSessionResponse{Session: record, Report: text}, nil
}

// ListNodes implements the service.
func (s *sessions) ListNodes(ctx context.Context, _ *attunev1.ListNodesRequest) (*attunev1.ListNodesResponse, error) {
	who, err := authn.PersonFrom(ctx)
	if err != nil {
		return nil, err
	}
	controllers := s.registry.Controllers()
	analyzers, err := s.registry.Analyzers(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "the registry does not answer: %v", err)
	}
	for _, c := range controllers {
		c.KeepOwn(func(uid uint32) bool { return authn.Reaches(who, uid) })
	}
	slices.SortFunc(analyzers, func(a, b *attunev1.AnalyzerRecord) int { return strings.Compare(a.GetHost(), b.GetHost()) })
	return &attunev1.ListNodesResponse{Controllers: controllers, Analyzers: analyzers}, nil
}

// LocateProcesses implements the service.
func (s *sessions) LocateProcesses(ctx context.Context, q *attunev1.LocateProcessesRequest) (*attunev1.LocateProcessesResponse, error) {
	who, err := authn.PersonFrom(ctx)
	if err != nil {
		return nil, err
	}
	nodes, silent, err := s.registry.Locate(ctx, q.GetLocate(), locatePatience)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "the registry does not answer: %v", err)
	}
	for _, n := range nodes {
		n.Processes = slices.DeleteFunc(n.GetProcesses(), func(p *attunev1.LocatedProcess) bool {
			return !authn.Reaches(who, p.GetProcess().GetUid())
		})
		n.Mismatches = slices.DeleteFunc(n.GetMismatches(), func(m *attunev1.Mismatch) bool {
			return !authn.Reaches(who, m.GetUid())
		})
	}
	return &attunev1.LocateProcessesResponse{Nodes: nodes, Silent: silent}, nil
}
