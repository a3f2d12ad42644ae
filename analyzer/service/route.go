// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/analyzer/channel"
	"github.com/attune-hpc/attune/internal/authn"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// routePatience is how long a controller waits whose registration is not known
// or not claimed here yet: it may have been quicker than the registry.
const routePatience = 2 * time.Second

// route finds the session that a controller serves, or begins it.
func (s *Service) route(ctx context.Context, hello channel.Hello) (channel.Session, error) {
	who, err := authn.PrincipalFrom(ctx)
	if err != nil {
		return nil, err
	}
	id := hello.GetRegistration()
	r := s.registration(ctx, id, routePatience)
	if r == nil {
		return nil, status.Errorf(codes.NotFound, "there is no registration %q", id)
	}
	user := hello.GetUser()
	if user == nil && who.GetRole() == attunev1.Role_ROLE_USER {
		user = who
	}
	if err := mayServe(who, r, user); err != nil {
		return nil, err
	}
	if err := s.awaitOwnership(ctx, id); err != nil {
		return nil, err
	}
	return s.session(who, r, hello.GetJob(), user)
}

// awaitOwnership returns when this Analyzer has a registration, or the error for
// a controller if another one has it, or nobody.
func (s *Service) awaitOwnership(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, routePatience)
	defer cancel()
	for {
		s.mu.Lock()
		o, owner, viewed := s.owned[id], s.view.Owners[id], s.viewed
		s.mu.Unlock()
		switch {
		case o != nil:
			return nil
		case owner != nil && owner.GetAnalyzer().GetId() != s.cfg.Record.GetId():
			return errMoved
		}
		select {
		case <-viewed:
		case <-ctx.Done():
			return status.Error(codes.Unavailable, "nobody has the registration yet")
		}
	}
}

// session returns the session of an execution; it begins with the first
// controller that names it.
func (s *Service) session(who *attunev1.Principal, r *attunev1.Registration, job *attunev1.Job, user *attunev1.Principal) (channel.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, k := s.owned[r.GetId()], newKey(r.GetId(), job, user)
	switch {
	case s.ending:
		return nil, errGoing
	case o == nil:
		return nil, errMoved
	case o.stopped[k]:
		return nil, status.Error(codes.Aborted, "the session was stopped")
	}
	h := s.hosted[k]
	if h == nil {
		if len(s.hosted) >= s.cfg.MaxSessions {
			return nil, status.Errorf(codes.ResourceExhausted, "the Analyzer has %d sessions already", len(s.hosted))
		}
		if err := s.roomForSession(who, k.uid); err != nil {
			return nil, err
		}
		var err error
		if h, err = s.begin(o, r, job, user); err != nil {
			return nil, err
		}
		s.hosted[k] = h
	}
	if err := h.admit(who, user); err != nil {
		return nil, err
	}
	return h, nil
}

// roomForSession says whether somebody's own controller may begin one session
// more: there are as many job ids as they like. Nodes bring what runs there. The
// caller holds mu.
func (s *Service) roomForSession(who *attunev1.Principal, uid uint32) error {
	if who.GetRole() != attunev1.Role_ROLE_USER {
		return nil
	}
	n := 0
	for k := range s.hosted {
		if k.uid == uid {
			n++
		}
	}
	if most := max(1, s.cfg.MaxSessions/userShare); n >= most {
		return status.Errorf(codes.ResourceExhausted, "%s has %d sessions already", who.GetName(), n)
	}
	return nil
}

// userShare is which part of all sessions the controllers of one user get: one in
// so many.
const userShare = 8
