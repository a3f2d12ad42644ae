// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// claimSpread is the time over which Analyzers claim what nobody has, so that
	// one alone does not get everything; each session that one has adds
	// claimBias, so that the idle ones come first.
	claimSpread = 100 * time.Millisecond
	claimBias   = 20 * time.Millisecond
	maxBias     = time.Second
	// jobPatience is how long a registration of one execution waits for it: jobs
	// may wait in queues.
	jobPatience = 14 * 24 * time.Hour
	// endedKept is how long it is remembered that a session has ended, as the
	// registry does.
	endedKept = 7 * 24 * time.Hour
	// releasePatience is how long the registry may take to let go of one, and
	// leavePatience of all at the end.
	releasePatience = 2 * time.Second
	leavePatience   = 10 * time.Second
)

// owned is a registration that this Analyzer has.
type owned struct {
	id    string
	lease *registry.Lease
	// past are the sessions of this registration, by id, that run by their record:
	// they are to be taken over when their controllers come.
	past map[string]*attunev1.SessionRecord
	// ended says when others ended, by id, which is not given again.
	ended map[string]time.Time
	// stopped are executions that are to be left alone.
	stopped map[key]bool
}

func newOwned(id string, lease *registry.Lease) *owned {
	return &owned{
		id: id, lease: lease, past: make(map[string]*attunev1.SessionRecord), ended: make(map[string]time.Time),
		stopped: make(map[key]bool),
	}
}

// end notes that a session has ended.
func (o *owned) end(r *attunev1.SessionRecord) {
	delete(o.past, r.GetId())
	o.ended[r.GetId()] = time.Unix(0, r.GetEndedUnixNano())
}

// errMoved and errGoing are what controllers are told.
var (
	errMoved = status.Error(codes.FailedPrecondition, "another Analyzer has the registration")
	errGoing = status.Error(codes.Unavailable, "the Analyzer is ending")
)

// claim tries to get registrations that nobody has, in the background.
func (s *Service) claim(ids []string) {
	for _, id := range ids {
		s.mu.Lock()
		bias := min(maxBias, time.Duration(len(s.hosted))*claimBias)
		s.mu.Unlock()
		s.inBackground(func(ctx context.Context) {
			if pause(ctx, bias+rand.N(claimSpread)) {
				s.own(ctx, id)
			}
		})
	}
}

// pause returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// own claims a registration and has it until it is lost. Somebody else may be
// quicker.
func (s *Service) own(ctx context.Context, id string) {
	if !s.beginClaim(id) {
		return
	}
	defer s.endClaim(id)
	lease, err := s.cfg.Registry.Claim(ctx, id, s.cfg.Record)
	if err != nil {
		if !errors.Is(err, registry.ErrOwned) && !errors.Is(err, registry.ErrNoRegistration) && ctx.Err() == nil {
			s.log.Warn("registration not claimed; it is tried again", "registration", id, "error", err)
		}
		return
	}
	o := newOwned(id, lease)
	if err := s.recall(ctx, o); err != nil {
		s.log.Warn("earlier sessions are not known; what they kept is undone", "registration", id, "error", err)
	}
	known := len(o.past) + len(o.ended)
	if !s.enter(o) {
		s.release(context.WithoutCancel(ctx), o)
		return
	}
	s.log.Info("registration claimed", "registration", id, "epoch", lease.Epoch(), "sessions", known)
	s.hold(ctx, o)
}

// enter has controllers served from now on, those too that have been waiting for
// it: the view that named this Analyzer may have come before. It returns false
// if the service is ending.
func (s *Service) enter(o *owned) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return false
	}
	s.owned[o.id] = o
	s.wake()
	return true
}

// beginClaim returns false for a registration that this Analyzer has, or is
// claiming: a second claim would end the lease of the first.
func (s *Service) beginClaim(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claiming[id] {
		return false
	}
	s.claiming[id] = true
	return true
}

func (s *Service) endClaim(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claiming, id)
}

// recall reads what is known of the sessions of a registration.
func (s *Service) recall(ctx context.Context, o *owned) error {
	records, err := s.cfg.Registry.Sessions(ctx)
	if err != nil {
		return fmt.Errorf("read the sessions: %w", err)
	}
	for _, r := range records {
		switch {
		case r.GetRegistration() != o.id:
		case r.GetEndedUnixNano() != 0:
			o.end(r)
		default:
			o.past[r.GetId()] = r
		}
	}
	return nil
}

// hold looks after a registration until its lease is lost. The sessions then
// belong to another Analyzer.
func (s *Service) hold(ctx context.Context, o *owned) {
	tidy := time.NewTicker(s.cfg.Grace + s.cfg.Linger)
	defer tidy.Stop()
	for lost := false; !lost; {
		select {
		case <-ctx.Done():
			return
		case <-tidy.C:
			s.tidy(ctx, o)
		case <-o.lease.Lost():
			lost = true
		}
	}
	s.mu.Lock()
	mine := s.owned[o.id] == o
	if mine {
		delete(s.owned, o.id)
	}
	s.mu.Unlock()
	if !mine {
		return // it was given up
	}
	s.log.Warn("registration lost to another Analyzer", "registration", o.id)
	for _, h := range s.hostedOf(o.id) {
		h.abandon(errMoved)
	}
}

// tidy ends what nobody came for: sessions that were to be taken over, and a
// registration of one execution only.
func (s *Service) tidy(ctx context.Context, o *owned) {
	s.mu.Lock()
	r := s.view.Registrations[o.id]
	var orphans []*attunev1.SessionRecord
	here := make(map[string]bool)
	for k, h := range s.hosted {
		if k.registration == o.id {
			here[h.snapshot().GetId()] = true
		}
	}
	for id, p := range o.past {
		if !here[id] {
			p = proto.CloneOf(p)
			p.State, p.Running, p.EndedUnixNano = attunev1.SessionState_SESSION_STATE_ENDED, 0, time.Now().UnixNano()
			o.end(p)
			orphans = append(orphans, p)
		}
	}
	busy, served := len(here) > 0, len(o.past)+len(o.ended) > 0
	maps.DeleteFunc(o.ended, func(_ string, at time.Time) bool { return time.Since(at) > endedKept })
	s.mu.Unlock()
	for _, p := range orphans {
		s.log.Info("session ended while it had no Analyzer", "session", p.GetId())
		s.recorder.put(p)
	}
	if r.GetJob() != nil && !busy && (served || time.Since(time.Unix(0, r.GetRegisteredUnixNano())) > jobPatience) {
		s.log.Info("registration of one execution has done its work", "registration", o.id)
		if err := s.cfg.Registry.DeleteRegistration(ctx, o.id); err != nil {
			s.log.Warn("registration not taken back; it is tried again", "registration", o.id, "error", err)
		}
	}
}

// release gives a lease back.
func (s *Service) release(ctx context.Context, o *owned) {
	ctx, cancel := context.WithTimeout(ctx, releasePatience)
	defer cancel()
	if err := o.lease.Release(ctx); err != nil {
		s.log.Warn("lease not released; it ends by itself", "registration", o.id, "error", err)
	}
}

// owner returns this Analyzer's ownership of a registration, nil if there is
// none.
func (s *Service) owner(id string) *owned {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned[id]
}
