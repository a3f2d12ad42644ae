// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// stopPatience is how long StopSession waits for the end.
const stopPatience = endPatience + dismissPatience + 5*time.Second

// StartSession implements the service.
func (s *Service) StartSession(ctx context.Context, q *attunev1.StartSessionRequest) (*attunev1.StartSessionResponse, error) {
	who, err := authn.PrincipalFrom(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.order(who, q.GetRegistration())
	if err != nil {
		return nil, err
	}
	if err := s.cfg.Registry.PutRegistration(ctx, r); err != nil {
		return nil, status.Errorf(codes.Unavailable, "the registry does not take it: %v", err)
	}
	s.log.Info("registered", "registration", r.GetId(), "owner", r.GetOwner().GetName(), "executable", r.GetExecutable(), "mode", r.GetMode())
	s.inBackground(func(ctx context.Context) { s.own(ctx, r.GetId()) }) // whoever asked is waiting for it
	return &attunev1.StartSessionResponse{Registration: r}, nil
}

// order returns the registration that is asked for, checked and completed.
func (s *Service) order(who *attunev1.Principal, asked *attunev1.Registration) (*attunev1.Registration, error) {
	r := proto.CloneOf(asked)
	if r == nil {
		return nil, status.Error(codes.InvalidArgument, "nothing is to be registered")
	}
	if r.GetMode() == "" {
		r.Mode = "tune"
	}
	if err := ValidateRegistration(r); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if err := s.knowTunlets(r.GetTunlets()); err != nil {
		return nil, err
	}
	r.Owner, r.RegisteredUnixNano = ownerOf(who, r), time.Now().UnixNano()
	if err := mayMean(who, r); err != nil {
		return nil, err
	}
	if who.GetRole() != attunev1.Role_ROLE_NODE {
		r.Id = ""
	}
	if strings.HasPrefix(r.GetId(), SiteID) {
		return nil, status.Errorf(codes.InvalidArgument, "ids with %s belong to the site's configuration", SiteID)
	}
	if r.GetId() != "" {
		return r, s.sameOwner(r)
	}
	if err := s.roomFor(r.GetOwner()); err != nil {
		return nil, err
	}
	r.Id = s.newID(r)
	return r, nil
}

// newID returns an id that nobody has: one that is given twice would hand
// somebody's registration over to somebody else.
func (s *Service) newID(r *attunev1.Registration) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if id := newRegistrationID(r); s.view.Registrations[id] == nil {
			return id
		}
	}
}

// knowTunlets returns an error that names tunlets which are not there.
func (s *Service) knowTunlets(names []string) error {
	if len(names) == 0 {
		return nil
	}
	var missing []string
	for _, c := range tunlethost.Find(s.cfg.TunletDirs, names) {
		if c.Err != nil {
			missing = append(missing, c.Name+": "+c.Err.Error())
		}
	}
	if len(missing) > 0 {
		return status.Errorf(codes.InvalidArgument, "tunlet %s", strings.Join(missing, "; "))
	}
	return nil
}

// sameOwner says whether an id that a node gave may be used: it is new, or was
// registered for the same user before.
func (s *Service) sameOwner(r *attunev1.Registration) error {
	s.mu.Lock()
	old := s.view.Registrations[r.GetId()]
	s.mu.Unlock()
	if old != nil && old.GetOwner().GetUid() != r.GetOwner().GetUid() {
		return status.Errorf(codes.AlreadyExists, "registration %s is of %s", r.GetId(), old.GetOwner().GetName())
	}
	return nil
}

// roomFor says whether a user may have one more registration.
func (s *Service) roomFor(owner *attunev1.Principal) error {
	if owner.GetRole() != attunev1.Role_ROLE_USER {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.view.Registrations {
		if r.GetOwner().GetRole() == attunev1.Role_ROLE_USER && r.GetOwner().GetUid() == owner.GetUid() {
			n++
		}
	}
	if n >= s.cfg.maxRegistrations {
		return status.Errorf(codes.ResourceExhausted, "%s has %d registrations already; take some back with attune session stop", owner.GetName(), n)
	}
	return nil
}

// StopSession implements the service.
func (s *Service) StopSession(ctx context.Context, q *attunev1.StopSessionRequest) (*attunev1.StopSessionResponse, error) {
	who, err := authn.PrincipalFrom(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	r := s.view.Registrations[q.GetId()]
	s.mu.Unlock()
	if r != nil {
		return s.stopRegistration(ctx, who, r, q.GetKeep())
	}
	_, h, err := s.find(ctx, who, q.GetId())
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, status.Errorf(codes.FailedPrecondition, "session %s has ended", q.GetId())
	}
	s.mu.Lock()
	if o := s.owned[h.key.registration]; o != nil {
		o.stopped[h.key] = true
	}
	s.mu.Unlock()
	records, err := s.stopAll(ctx, []*hosted{h}, ending{reason: "stopped by " + who.GetName(), keep: q.GetKeep()})
	return &attunev1.StopSessionResponse{Sessions: records}, err
}

// stopRegistration withdraws a registration with its sessions.
func (s *Service) stopRegistration(ctx context.Context, who *attunev1.Principal, r *attunev1.Registration, keep bool) (*attunev1.StopSessionResponse, error) {
	id := r.GetId()
	if !concerns(who, r) {
		return nil, notFound(id)
	}
	if strings.HasPrefix(id, SiteID) {
		return nil, status.Errorf(codes.FailedPrecondition, "registration %s is in the Analyzer's configuration: take it out there", id)
	}
	if s.owner(id) == nil {
		if err := s.elsewhere(id); err != nil {
			return nil, err
		}
	}
	list := s.hostedOf(id)
	for _, h := range list { // before the registry tells that it is withdrawn, which keeps nothing
		h.stop(ending{reason: "its registration was withdrawn by " + who.GetName(), keep: keep})
	}
	if err := s.cfg.Registry.DeleteRegistration(ctx, id); err != nil {
		return nil, status.Errorf(codes.Unavailable, "the registry does not take it back: %v", err)
	}
	records, err := await(ctx, list)
	return &attunev1.StopSessionResponse{Registration: r, Sessions: records}, err
}

// stopAll ends sessions and waits for that.
func (s *Service) stopAll(ctx context.Context, list []*hosted, e ending) ([]*attunev1.SessionRecord, error) {
	for _, h := range list {
		h.stop(e)
	}
	return await(ctx, list)
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
func (s *Service) ListSessions(ctx context.Context, q *attunev1.ListSessionsRequest) (*attunev1.ListSessionsResponse, error) {
	who, err := authn.PrincipalFrom(ctx)
	if err != nil {
		return nil, err
	}
	records, _, err := s.records(ctx)
	if err != nil {
		return nil, err
	}
	registrations, err := s.registrations(ctx)
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
	slices.SortFunc(out.Sessions, func(a, b *attunev1.SessionRecord) int { return strings.Compare(a.GetId(), b.GetId()) })
	return out, nil
}

// records returns the records of all sessions: of this Analyzer's as they stand,
// of others as the registry has them. here are the places of this Analyzer's that
// have not ended, by the id of the session.
//
// What is in this process is looked at first, and what the registry knows after
// it: a session that ends meanwhile is in the one or in the other. One that begins
// meanwhile is found by the second look.
func (s *Service) records(ctx context.Context) (list []*attunev1.SessionRecord, here map[string]*hosted, err error) {
	here = s.here()
	known := s.recorder.unsent()
	list, err = s.cfg.Registry.Sessions(ctx)
	if err != nil {
		return nil, nil, status.Errorf(codes.Unavailable, "the registry does not answer: %v", err)
	}
	analyzers, err := s.cfg.Registry.Analyzers(ctx)
	if err != nil {
		return nil, nil, status.Errorf(codes.Unavailable, "the registry does not answer: %v", err)
	}
	maps.Copy(here, s.here())
	for id, h := range here {
		known[id] = h.snapshot()
	}
	for i, r := range list {
		switch {
		case known[r.GetId()] != nil:
			list[i] = known[r.GetId()]
			delete(known, r.GetId())
		case r.GetState() == attunev1.SessionState_SESSION_STATE_RUNNING && !lives(analyzers, r.GetAnalyzer(), s.cfg.Record.GetId()):
			r.State = attunev1.SessionState_SESSION_STATE_ORPHANED
		}
	}
	return slices.AppendSeq(list, maps.Values(known)), here, nil
}

// here returns the sessions of this Analyzer, by id.
func (s *Service) here() map[string]*hosted {
	here := make(map[string]*hosted)
	for _, h := range s.hostedOf("") {
		here[h.snapshot().GetId()] = h
	}
	return here
}

// lives says whether an Analyzer is there; of this one, sessions that it does
// not have any more are not.
func lives(analyzers []*attunev1.AnalyzerRecord, id, self string) bool {
	return id != self && slices.ContainsFunc(analyzers, func(a *attunev1.AnalyzerRecord) bool { return a.GetId() == id })
}

// ShowSession implements the service.
func (s *Service) ShowSession(ctx context.Context, q *attunev1.ShowSessionRequest) (*attunev1.ShowSessionResponse, error) {
	who, err := authn.PrincipalFrom(ctx)
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
	text, err := s.reports.get(record.GetId())
	switch {
	case errors.Is(err, errNoReport): // it is another Analyzer's, or too old
		return &attunev1.ShowSessionResponse{Session: record}, nil
	case err != nil:
		return nil, status.Errorf(codes.Internal, "read the report: %v", err)
	}
	return &attunev1.ShowSessionResponse{Session: record, Report: text}, nil
}
