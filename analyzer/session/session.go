// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// inboxSize bounds the messages in the inbox, inboxBytes the measured data
	// among them.
	inboxSize  = 1024
	inboxBytes = 8 << 20
	// dataShare is how much of the inbox data may fill; the rest is for news.
	dataShare = inboxSize * 3 / 4
	// renewEvery is how often leases are renewed.
	renewEvery = time.Second
)

// ErrEnded is returned for requests to a session that has ended.
var ErrEnded = errors.New("the session has ended")

// Config configures a session.
type Config struct {
	// ID names the session.
	ID string
	// Command is the application's command line; empty: that of the first
	// process.
	Command []string
	// Tick is the period of ticks, samples and aggregates; 0: 50 ms.
	Tick time.Duration
	// Lease is how long a change lives without a renewal; 0: 5 s.
	Lease time.Duration
	// callTimeout bounds each call to a tunlet, which holds up nobody else
	// meanwhile; 0: 5 s, which a tunlet on a crowded node keeps.
	callTimeout time.Duration
	// Grace is how long a controller may be out of reach before its processes
	// count as ended; 0: not at all.
	Grace time.Duration
	// Inherit are changes that an earlier session of the same execution kept:
	// this one goes on with them.
	Inherit []*attunev1.KeptChange
	// Known returns what earlier runs of an application have learnt, by the
	// SHA-256 of its executable. It may wait for a while; nil: nothing is known.
	Known func(application string) []core.Known
	// Core holds the rules of the decision, the mode among them.
	Core core.Config
	// Sinks take all that the session sees and does, each frame in this order.
	Sinks []Sink
	// Version is Attune's own, for who reads what was recorded.
	Version string
	// now tells the time; nil: time.Now.
	now func() time.Time
	// ticks makes time pass, for tests; nil: a ticker of period Tick.
	ticks <-chan time.Time
	// Log takes what has no better place; nil: nothing is logged.
	Log *slog.Logger
}

// withDefaults returns c with zero values replaced.
func (c Config) withDefaults() Config {
	if c.Tick == 0 {
		c.Tick = 50 * time.Millisecond
	}
	if c.Lease == 0 {
		c.Lease = 5 * time.Second
	}
	if c.callTimeout == 0 {
		c.callTimeout = 5 * time.Second
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Sink takes what happens in a session, frame by frame: the first one in New, the
// others in the loop. Take does not wait, does not change the frame, and keeps
// nothing of it but what it copies.
type Sink interface {
	Take(*attunev1.RecordingFrame)
}

// Session is one tuning session. Its exported methods are safe for use by
// several goroutines.
type Session struct {
	clock
	inbox

	cfg     Config
	log     *slog.Logger
	workers sync.WaitGroup

	// What follows belongs to the loop, and after done to everybody.
	teller

	core        *core.Core
	events      []core.Event // to be stepped
	stepping    bool
	controllers controllers
	wants       wants
	refused     map[string]bool // hosts of which people were told that a controller is refused
	processes   *processes
	newcomers   []*process // that the tunlets have not heard of yet
	points      points
	askers      []*asker // without the tunlets
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
	waiting     []waiter // for something to come true
}

// New returns a session that starts now. Run makes it work.
func New(cfg Config) *Session {
	cfg = cfg.withDefaults()
	s := &Session{
		clock: clock{start: cfg.now(), wall: cfg.now}, cfg: cfg, log: cfg.Log,
		inbox:      inbox{messages: make(chan func(), inboxSize), done: make(chan struct{})},
		core:       core.New(cfg.Core),
		refused:    map[string]bool{},
		processes:  newProcesses(),
		points:     newPoints(),
		tunlets:    map[string]*tunlet{},
		sleepers:   sleepers{wake: map[string]func(){}, waking: map[string][]*attunev1.SampleBatch{}},
		lossesTold: losses{before: map[string]uint64{}, told: map[string]uint64{}},
		requests:   map[string]*request{},
		inherited:  map[string]*attunev1.KeptChange{},
		recalled:   map[string]bool{},
		useful:     map[string]bool{},
	}
	s.controllers = controllers{byID: map[string]*controller{}, made: s.offerPoints}
	s.wants = wants{
		clock: &s.clock, controllers: &s.controllers, processes: s.processes,
		parties: map[party]bool{&s.sleepers: true}, due: map[*controller]bool{},
	}
	for _, k := range cfg.Inherit {
		s.inherited[k.GetId()] = k
	}
	s.renewed, s.haste.credit = s.start, maxCredit
	s.teller = teller{clock: &s.clock, sinks: cfg.Sinks, others: s.watchers}
	s.emitHeader()
	return s
}

// Done is closed when the session takes no more messages.
func (s *Session) Done() <-chan struct{} { return s.done }

// Start returns when the session started.
func (s *Session) Start() time.Time { return s.start }

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
		s.release()
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
	answer := make(chan T, 1)
	if s.post(func() { s.emitChanged(); answer <- f(s.now()) }) {
		select {
		case v := <-answer:
			return v, nil
		case <-ctx.Done():
			var zero T
			return zero, ctx.Err()
		case <-s.done:
		}
	}
	return f(s.now()), nil
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
