// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/analyzer/channel"
	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/queue"
	"github.com/attune-hpc/attune/internal/registry"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Service has the sessions of a site. Its methods are safe for use by several
// goroutines.
type Service struct {
	attunev1.UnimplementedSessionServiceServer

	cfg      Config
	log      *slog.Logger
	reports  *reports
	recorder *recorder
	tunlets  *tunlethost.Pool // of all sessions
	resite   queue.Bell       // rung when the site's registrations change
	sessions sync.WaitGroup
	claims   sync.WaitGroup
	ctx      context.Context // of claims
	cancel   context.CancelFunc
	now      func() time.Time // by which sessions are idle

	mu     sync.Mutex // guards what follows; before hosted.mu
	view   registry.View
	viewed chan struct{} // closed when view or owned has changed
	owned  map[string]*owned
	// claiming are the registrations that somebody here claims or holds.
	claiming map[string]bool
	hosted   map[key]*hosted
	ending   bool // no session is begun any more
}

// key is what a session is known by. Users are told apart, since anybody can give
// their processes the job id of somebody else, and keep them away from the site's
// registrations by being first.
type key struct {
	registration, job string
	uid               uint32 // pki.NoUID: nobody has said
}

func newKey(registration string, job *attunev1.Job, user *attunev1.Principal) key {
	uid := pki.NoUID
	if user != nil {
		uid = user.GetUid()
	}
	return key{registration, job.Key(), uid}
}

// New returns a service that does nothing until Run.
func New(cfg Config) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	log := cfg.Log.With("component", "service")
	reports, err := openReports(cfg.ReportDir, cfg.Reports, log)
	if err != nil {
		return nil, err
	}
	tunlets, err := tunlethost.NewPool(tunlethost.PoolOptions{Limits: cfg.TunletLimits, MaxOwn: cfg.MaxTunletProcesses, Log: log})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Service{
		ctx: ctx, cancel: cancel, cfg: cfg, log: log, reports: reports, recorder: newRecorder(cfg.Registry.PutSession, log), tunlets: tunlets,
		resite: queue.NewBell(), now: time.Now,
		viewed: make(chan struct{}), owned: make(map[string]*owned), claiming: make(map[string]bool), hosted: make(map[key]*hosted),
	}, nil
}

// Register adds the channels, the SessionService and the ProbeService to a server. The caller
// waits for the channels after the server's Stop.
func (s *Service) Register(server grpc.ServiceRegistrar) *channel.Channels {
	attunev1.RegisterSessionServiceServer(server, s)
	attunev1.RegisterProbeServiceServer(server, probes{service: s})
	return channel.Register(server, s.route)
}

// Run announces the Analyzer and works until ctx ends. Sessions are then left as
// they are, for whoever comes next: nothing is undone. The error is nil then.
func (s *Service) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.cancel)()
	announcement, err := s.cfg.Registry.Announce(context.WithoutCancel(ctx), s.cfg.Record)
	if err != nil {
		return fmt.Errorf("announce the Analyzer: %w", err)
	}
	defer announcement.End() // after the leases were released
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return s.cfg.Registry.Watch(inner, func(v registry.View) { s.see(inner, v) }) })
	group.Go(func() error {
		return s.cfg.Registry.WatchUnowned(inner, s.claim)
	})
	group.Go(func() error { return s.registerSite(inner) })
	group.Go(func() error { s.recorder.run(inner); return nil })
	err = group.Wait()
	s.cancel()
	s.leave(context.WithoutCancel(ctx))
	s.tunlets.Close()
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// see takes over what is registered now.
func (s *Service) see(ctx context.Context, v registry.View) {
	s.mu.Lock()
	s.view = v
	s.wake()
	var withdrawn []*owned
	var own []string // by its record, from before it was started again
	for id, o := range s.owned {
		if v.Registrations[id] == nil {
			withdrawn = append(withdrawn, o)
			delete(s.owned, id)
		}
	}
	for id, o := range v.Owners {
		if o.GetAnalyzer().GetId() == s.cfg.Record.GetId() && s.owned[id] == nil && v.Registrations[id] != nil {
			own = append(own, id)
		}
	}
	s.mu.Unlock()
	for _, id := range own {
		s.inBackground(func(ctx context.Context) { s.own(ctx, id) })
	}
	for _, o := range withdrawn {
		s.log.Info("registration withdrawn", "registration", o.id)
		for _, h := range s.hostedOf(o.id) {
			h.stop(ending{reason: "its registration was withdrawn"})
		}
		s.release(ctx, o)
	}
}

// wake has those look again who wait for a change. The caller holds mu.
func (s *Service) wake() {
	close(s.viewed)
	s.viewed = make(chan struct{})
}

// registration returns a registration, and waits a moment for one that is so new
// that it is not known here yet. nil: there is none.
func (s *Service) registration(ctx context.Context, id string, patience time.Duration) *attunev1.Registration {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		s.mu.Lock()
		r, viewed := s.view.Registrations[id], s.viewed
		s.mu.Unlock()
		if r != nil {
			return r
		}
		select {
		case <-viewed:
		case <-ctx.Done():
			return nil
		}
	}
}

// Ready says whether it is known what is registered: after a start the registry has to
// tell first.
func (s *Service) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view.Registrations != nil
}

// viewPatience is how long the registry may take to tell what is registered.
const viewPatience = 5 * time.Second

// registrations returns what is registered, and waits until that is known.
func (s *Service) registrations(ctx context.Context) (map[string]*attunev1.Registration, error) {
	ctx, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	for {
		s.mu.Lock()
		all, viewed := s.view.Registrations, s.viewed
		s.mu.Unlock()
		if all != nil {
			return all, nil
		}
		select {
		case <-viewed:
		case <-ctx.Done():
			return nil, status.Error(codes.Unavailable, "the registry has not told yet what is registered")
		}
	}
}

// hostedOf returns the sessions of a registration, of all if id is empty.
func (s *Service) hostedOf(id string) (list []*hosted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, h := range s.hosted {
		if id == "" || k.registration == id {
			list = append(list, h)
		}
	}
	return list
}

// leave gives everything over to whoever comes next.
func (s *Service) leave(ctx context.Context) {
	s.mu.Lock()
	s.ending = true
	all := s.owned
	s.owned = make(map[string]*owned)
	s.mu.Unlock()
	for _, h := range s.hostedOf("") {
		h.abandon(errGoing)
	}
	s.sessions.Wait()
	s.recorder.flush(ctx)
	s.claims.Wait()
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	for _, o := range all { // there may be thousands, and the registry away
		s.release(ctx, o)
	}
}

// inBackground has something about claims done, unless the service is ending.
func (s *Service) inBackground(do func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ending {
		s.claims.Go(func() { do(s.ctx) })
	}
}
