// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/attune-hpc/attune/analyzer/channel"
	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/queue"
	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/registry"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// comeBack is how long controllers may take to find an Analyzer that has taken over.
const comeBack = time.Minute

// Service has the sessions of a site: it ties together what the other files have.
// Its methods are safe for use by several goroutines.
type Service struct {
	cfg      Config
	table    *table
	claims   *claims
	router   router
	site     site
	sessions sessions
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
	t, rec := newTable(cfg.Record.GetId()), newRecorder(cfg.Registry.PutSession, log)
	f := finder{table: t, registry: cfg.Registry, recorder: rec, reports: reports}
	ctx, cancel := context.WithCancel(context.Background())
	c := &claims{
		table: t, registry: cfg.Registry, recorder: rec, log: log, patience: min(cfg.Grace, comeBack) + cfg.Linger,
		ctx: ctx, cancel: cancel,
	}
	s := &Service{
		cfg: cfg, table: t, claims: c,
		router: router{
			cfg: cfg, log: log, table: t, reports: reports, recorder: rec, tunlets: tunlets, now: time.Now,
			begun: quota.NewRate[uint32](max(1, cfg.MaxSessions/2), beginEvery),
		},
		site: site{registry: cfg.Registry, host: cfg.Record.GetHost(), log: log, changed: queue.NewBell(), list: cfg.Registrations},
		sessions: sessions{
			finder: f, claims: c, log: log,
			orders: orders{
				table: t, tunletDirs: cfg.TunletDirs, most: cfg.maxRegistrations,
				rate: quota.NewRate[string](cfg.maxRegistrations, registerEvery), handedOver: newHandedOver(t, cfg.MaxSessions),
			},
		},
	}
	cfg.Metrics.Read(s.read)
	return s, nil
}

// Register adds the channels and the services for people to a server. The caller
// waits for the channels after the server's Stop.
func (s *Service) Register(server grpc.ServiceRegistrar) *channel.Channels {
	attunev1.RegisterSessionServiceServer(server, &s.sessions)
	attunev1.RegisterProbeServiceServer(server, probes{finder: &s.sessions.finder})
	attunev1.RegisterRevocationServiceServer(server, revocations{registry: s.cfg.Registry, log: s.sessions.log})
	return channel.Register(server, s.router.route)
}

// Run announces the Analyzer and works until ctx ends. Sessions are then left as
// they are, for whoever comes next: nothing is undone. The error is nil then.
func (s *Service) Run(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.claims.cancel)()
	announcement, err := s.cfg.Registry.Announce(context.WithoutCancel(ctx), s.cfg.Record, (&tunletNames{dirs: s.cfg.TunletDirs}).current)
	if err != nil {
		return fmt.Errorf("announce the Analyzer: %w", err)
	}
	defer announcement.End() // after the leases were released
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error {
		return s.cfg.Registry.Watch(inner, func(v registry.View) {
			s.claims.see(inner, v)
			s.sessions.orders.handedOver.see(v)
		})
	})
	group.Go(func() error { return s.cfg.Registry.WatchUnowned(inner, s.claims.claimUnowned) })
	group.Go(func() error { return s.site.run(inner) })
	group.Go(func() error { s.router.recorder.run(inner); return nil })
	err = group.Wait()
	s.claims.cancel()
	s.leave(context.WithoutCancel(ctx))
	s.router.tunlets.Close()
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// leave gives everything over to whoever comes next.
func (s *Service) leave(ctx context.Context) {
	all := s.table.end()
	for _, h := range s.table.hostedOf("") {
		h.abandon(errGoing)
	}
	s.router.running.Wait()
	s.router.recorder.flush(ctx)
	s.claims.running.Wait()
	ctx, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	for _, o := range all { // there may be thousands, and the registry away
		s.claims.release(ctx, o)
	}
}

// SetRegistrations replaces the site's own registrations, which must be valid.
func (s *Service) SetRegistrations(list []*attunev1.Registration) { s.site.set(list) }

// Ready says whether it is known what is registered: after a start the registry has to
// tell first.
func (s *Service) Ready() bool { return s.table.registrations() != nil }

// Status is how a service is.
type Status struct {
	// Record is its own.
	Record *attunev1.AnalyzerRecord
	// Registrations counts those of the site, Owned those that this one has.
	Registrations, Owned int
	// Sessions counts its sessions, MaxSessions is how many there may be, and Refused
	// counts those that nodes asked for since the start and that were not begun.
	Sessions, MaxSessions int
	Refused               uint64
	// TunletProcesses counts the processes of their tunlets.
	TunletProcesses int
}

// Status returns how the service is.
func (s *Service) Status() Status {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	return Status{
		Record: s.cfg.Record, Registrations: len(s.table.view.Registrations), Owned: len(s.table.owned),
		Sessions: len(s.table.hosted), MaxSessions: s.cfg.MaxSessions, Refused: s.router.refused, TunletProcesses: s.router.tunlets.Processes(),
	}
}

// read gives the metrics of the moment.
func (s *Service) read(put metrics.Put) {
	status := s.Status()
	put(metrics.Sessions, float64(status.Sessions))
	put(metrics.Registrations, float64(status.Registrations))
	put(metrics.RegistrationsOwned, float64(status.Owned))
	put(metrics.TunletProcesses, float64(status.TunletProcesses))
	put(metrics.Nodes, float64(len(s.cfg.Registry.Controllers())))
	put(metrics.RecordsOfSessionsLost, float64(s.router.recorder.dropped()))
	var held [series.SignalSize]uint64
	for _, h := range s.table.hostedOf("") {
		for id, n := range h.holds() {
			held[id] += n
		}
	}
	for id, n := range held {
		if m, factor := metrics.Application(series.ID(id)); m != nil && !m.Counts {
			put(m, factor*float64(n))
		}
	}
}
