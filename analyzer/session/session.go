// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// renewEvery is how often leases are renewed.
const renewEvery = time.Second

// Session is one tuning session. Its exported methods are safe for use by
// several goroutines.
type Session struct {
	*clock
	*inbox
	*waiters
	*askers

	cfg     Config
	log     *slog.Logger
	workers sync.WaitGroup

	// What follows belongs to the loop, and after done to everybody.
	*teller

	core        *core.Core
	events      []core.Event // to be stepped
	stepping    bool
	controllers *controllers
	dropped     dropped
	wants       *wants
	refused     map[string]bool // hosts of which people were told that a controller is refused
	processes   *processes
	newcomers   []*process // that the tunlets have not heard of yet
	points      *points
	tunlets     map[string]*tunlet
	sleepers    sleepers
	lossesTold  losses
	requests    map[string]*request
	inherited   map[string]*attunev1.KeptChange // whose process is not there yet, by id
	recalled    map[string]bool                 // executables whose knowledge was asked for
	useful      map[string]bool                 // tunlets that helped in an earlier run
	renewed     time.Time
	haste       haste
	pace        time.Duration // of ticks and samples at present; 0: the tick
	ticker      *time.Ticker  // nil in tests, which tick by hand
	ticked      time.Duration // when the last tick was
	omittedTold int           // proposals of which the sinks know that they are forgotten
	keep        bool          // Settle leaves what was kept
	settling    bool          // nothing is decided any more
	finishing   bool          // the tunlets have been told of the end
	closing     bool
}

// New returns a session that starts now. Run makes it work.
func New(cfg Config) *Session {
	cfg = cfg.withDefaults()
	s := &Session{
		clock: &clock{start: cfg.now(), wall: cfg.now}, inbox: newInbox(), cfg: cfg, log: cfg.Log,
		core:       core.New(cfg.Core),
		refused:    map[string]bool{},
		processes:  newProcesses(),
		tunlets:    map[string]*tunlet{},
		sleepers:   sleepers{wake: map[string]func(){}, waking: map[string][]*attunev1.SampleBatch{}},
		lossesTold: losses{before: map[string]uint64{}, told: map[string]uint64{}},
		requests:   map[string]*request{},
		inherited:  map[string]*attunev1.KeptChange{},
		recalled:   map[string]bool{},
		useful:     map[string]bool{},
	}
	s.waiters = &waiters{inbox: s.inbox}
	s.controllers = &controllers{byID: map[string]*controller{}, made: func(c *controller) { s.points.offer(c) }}
	s.wants = &wants{
		clock: s.clock, controllers: s.controllers, processes: s.processes,
		parties: map[party]bool{&s.sleepers: true}, due: map[*controller]bool{},
	}
	s.teller = &teller{clock: s.clock, sinks: cfg.Sinks, others: func(yield func(Sink) bool) { s.askers.sinks(yield) }}
	s.points = &points{pointSet: newPointSet(), clock: s.clock, teller: s.teller, wants: s.wants}
	s.askers = &askers{
		inbox: s.inbox, teller: s.teller, processes: s.processes, points: s.points, wants: s.wants, hurry: s.hurry,
	}
	for _, k := range cfg.Inherit {
		s.inherited[k.GetId()] = k
	}
	s.renewed, s.haste.credit = s.start, maxCredit
	s.emitHeader()
	return s
}

// Run works until Close or the end of ctx, then waits for the tunlets' workers.
// It is called once.
func (s *Session) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer s.workers.Wait()
	defer cancel()
	defer close(s.done)
	ticks := s.cfg.ticks
	if ticks == nil {
		s.ticker = time.NewTicker(s.cfg.Tick)
		defer s.ticker.Stop()
		ticks = s.ticker.C
	}
	for !s.closing {
		select {
		case <-ctx.Done():
			s.closing = true
		case f := <-s.messages:
			f()
		case <-ticks:
			s.tick()
		}
		s.wants.tell(s.pace)
		s.waiters.release()
	}
	s.emitChanged()
	for _, t := range s.tunlets {
		t.worker.stop()
	}
}

// View has the loop compute something of what the sinks have taken, which know all
// until the given time since the session's start, and waits for it. Once the session
// has ended it computes it itself: nobody changes anything then.
func View[T any](ctx context.Context, s *Session, f func(at time.Duration) T) (T, error) {
	var v T
	err := s.do(ctx, func() { s.emitChanged(); v = f(s.now()) })
	switch {
	case errors.Is(err, ErrEnded):
		return f(s.now()), nil
	case err != nil: // f may be at work
		var zero T
		return zero, err
	}
	return v, nil
}

// tickWithSamples makes time pass when samples come: who is awake then need not be
// woken for a tick besides, which the ticker gives only where no samples come.
func (s *Session) tickWithSamples() {
	if s.ticker != nil && s.now()-s.ticked >= s.pace/2 {
		s.tick()
	}
}

// tick makes time pass for everybody.
func (s *Session) tick() {
	now := s.cfg.now()
	s.ticked = s.now()
	if s.ticker != nil {
		defer func() { s.ticker.Reset(cmp.Or(s.pace*3/2, s.cfg.Tick)) }()
	}
	s.step(core.Tick{})
	s.introduceGrown()
	s.await()
	s.relax()
	s.emitChanged()
	s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Tick{Tick: &attunev1.RecordedTick{}}})
	for _, t := range s.tunlets {
		t.tick(now)
	}
	if now.Sub(s.renewed) >= renewEvery {
		s.renewed = now
		s.renew()
	}
}

// Tell gives the sinks frames of what the session does not know itself, unless it has
// ended.
func (s *Session) Tell(frames ...*attunev1.RecordingFrame) {
	s.post(func() {
		for _, f := range frames {
			s.emit(f)
		}
	})
}

func (s *Session) emitHeader() {
	s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{
		Version: s.cfg.Version, StartUnixNano: s.start.UnixNano(), Application: s.application(), Inherited: s.cfg.Inherit,
	}}})
}

// application is what tunlets are told of the application.
func (s *Session) application() *attunev1.Application {
	return &attunev1.Application{
		SessionId: s.cfg.ID, Command: slices.Clone(s.cfg.Command), Mode: s.cfg.Core.Mode.String(), TickNanos: int64(s.cfg.Tick),
	}
}

// emitChanged tells what is not told when it changes, because it changes often: how
// proposals stand, and what was lost.
func (s *Session) emitChanged() {
	changed, forgotten := s.core.Changed()
	for _, v := range changed {
		s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Proposal{Proposal: proposalOf(v)}})
	}
	if n := s.core.Forgotten(); n != s.omittedTold {
		s.omittedTold = n
		s.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Omission{
			Omission: &attunev1.RecordedOmission{Proposals: forgotten, ProposalsOmitted: uint64(n)},
		}})
	}
	s.emitLosses()
}
