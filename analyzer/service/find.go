// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// locatePatience is how long nodes may take to say what they have.
const locatePatience = time.Second

// notFound is what is said of what is not there, or not for who asks: that it is
// there is nobody else's business.
func notFound(id string) error {
	return status.Errorf(codes.NotFound, "there is no session or registration %q", id)
}

// find returns a session by its id, or by its registration's if that has one
// session only, and its place at this Analyzer; nil if it has ended. Somebody who
// may not see it learns no more than of one that is not there.
func (s *Service) find(ctx context.Context, who *attunev1.Principal, id string) (*attunev1.SessionRecord, *hosted, error) {
	records, here, err := s.records(ctx)
	if err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	registrations := s.view.Registrations
	s.mu.Unlock()
	var found []*attunev1.SessionRecord
	for _, r := range records {
		if (r.GetId() == id || r.GetRegistration() == id) && concernsSession(who, r, registrations[r.GetRegistration()]) {
			found = append(found, r)
		}
	}
	r, err := s.choose(id, found)
	if err != nil || r.GetState() == attunev1.SessionState_SESSION_STATE_ENDED {
		return r, nil, err
	}
	if h := here[r.GetId()]; h != nil {
		return r, h, nil
	}
	if err := s.elsewhere(r.GetRegistration()); err != nil {
		return nil, nil, err
	}
	return nil, nil, status.Errorf(codes.Unavailable, "no controller of session %s has come since its Analyzer ended", r.GetId())
}

// choose returns the session that is meant: by its id, else the only one, else
// the only one that runs.
func (s *Service) choose(id string, found []*attunev1.SessionRecord) (*attunev1.SessionRecord, error) {
	for _, r := range found {
		if r.GetId() == id {
			return r, nil
		}
	}
	if len(found) == 0 {
		return nil, notFound(id)
	}
	if len(found) > 1 {
		running := slices.DeleteFunc(slices.Clone(found), func(r *attunev1.SessionRecord) bool {
			return r.GetState() == attunev1.SessionState_SESSION_STATE_ENDED
		})
		if len(running) != 1 {
			var ids []string
			for _, r := range found {
				ids = append(ids, r.GetId())
			}
			slices.Sort(ids)
			return nil, status.Errorf(codes.FailedPrecondition, "%s has %d sessions, name one: %s", id, len(found), strings.Join(ids, ", "))
		}
		return running[0], nil
	}
	return found[0], nil
}

// elsewhere returns an error that says which Analyzer has a registration; nil if
// that is this one, or nobody.
func (s *Service) elsewhere(registration string) error {
	s.mu.Lock()
	owner := s.view.Owners[registration].GetAnalyzer()
	s.mu.Unlock()
	if owner == nil || owner.GetId() == s.cfg.Record.GetId() {
		return nil
	}
	said := status.Newf(codes.FailedPrecondition, "the Analyzer on %s has it: ask there, at %s", owner.GetHost(), strings.Join(owner.GetAddresses(), " or "))
	if more, err := said.WithDetails(owner); err == nil { // clients go there by themselves
		said = more
	}
	return said.Err()
}

// show tells all of a session that runs.
func (h *hosted) show() (*attunev1.ShowSessionResponse, error) {
	var text bytes.Buffer
	if err := h.analyzer.Report().EncodeJSON(&text); err != nil {
		return nil, status.Errorf(codes.Internal, "write the report: %v", err)
	}
	return &attunev1.ShowSessionResponse{Session: h.snapshot(), Report: text.Bytes()}, nil
}

// ListNodes implements the service.
func (s *Service) ListNodes(ctx context.Context, _ *attunev1.ListNodesRequest) (*attunev1.ListNodesResponse, error) {
	who, err := authn.PrincipalFrom(ctx)
	if err != nil {
		return nil, err
	}
	controllers, err := s.cfg.Registry.Controllers(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "the registry does not answer: %v", err)
	}
	analyzers, err := s.cfg.Registry.Analyzers(ctx)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "the registry does not answer: %v", err)
	}
	for _, c := range controllers {
		withOwn(who, c, s.visible(who))
	}
	slices.SortFunc(controllers, func(a, b *attunev1.ControllerRecord) int { return strings.Compare(a.GetHost(), b.GetHost()) })
	slices.SortFunc(analyzers, func(a, b *attunev1.AnalyzerRecord) int { return strings.Compare(a.GetHost(), b.GetHost()) })
	return &attunev1.ListNodesResponse{Controllers: controllers, Analyzers: analyzers}, nil
}

// visible says which registrations somebody may see.
func (s *Service) visible(who *attunev1.Principal) func(id string) bool {
	s.mu.Lock()
	registrations := s.view.Registrations
	s.mu.Unlock()
	return func(id string) bool { return concerns(who, registrations[id]) }
}

// LocateProcesses implements the service.
func (s *Service) LocateProcesses(ctx context.Context, q *attunev1.LocateProcessesRequest) (*attunev1.LocateProcessesResponse, error) {
	who, err := authn.PrincipalFrom(ctx)
	if err != nil {
		return nil, err
	}
	nodes, silent, err := s.cfg.Registry.Locate(ctx, q.GetLocate(), locatePatience)
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "the registry does not answer: %v", err)
	}
	for _, n := range nodes {
		n.Processes = slices.DeleteFunc(n.GetProcesses(), func(p *attunev1.LocatedProcess) bool {
			return !authn.Reaches(who, p.GetProcess().GetUid())
		})
		n.Mismatches = ownMismatches(who, n.GetMismatches())
	}
	slices.SortFunc(nodes, func(a, b *attunev1.LocateResponse) int { return strings.Compare(a.GetHost(), b.GetHost()) })
	return &attunev1.LocateProcessesResponse{Nodes: nodes, Silent: silent}, nil
}
