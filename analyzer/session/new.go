// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

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
	// ProvenLease is that of a change that is proven good and not on trial; 0: as Lease.
	ProvenLease time.Duration
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
	// NodesMeasure is the owner's objective where the controllers measure it, as they are
	// told, and Part takes what they find, in the session's loop, and returns what people
	// are to be told of that; empty and nil: they do not.
	NodesMeasure string
	Part         func(controller string, part *attunev1.ObjectivePart) (remark string)
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
	c.Tick = cmp.Or(c.Tick, 50*time.Millisecond)
	c.Lease = cmp.Or(c.Lease, 5*time.Second)
	c.ProvenLease = cmp.Or(c.ProvenLease, c.Lease)
	c.callTimeout = cmp.Or(c.callTimeout, 5*time.Second)
	if c.now == nil {
		c.now = time.Now
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// New returns a session that starts now. Run makes it work.
func New(cfg Config) *Session {
	cfg = cfg.withDefaults()
	s := &Session{tickEvery: cfg.Tick, ticks: cfg.ticks, clock: &clock{start: cfg.now(), wall: cfg.now}, inbox: newInbox()}
	s.renewed = s.start
	s.waiters = &waiters{inbox: s.inbox}
	s.teller = &teller{clock: s.clock, sinks: cfg.Sinks, others: func(yield func(Sink) bool) { s.watchers(yield) }}
	s.pace = &pace{clock: s.clock, tick: cfg.Tick, audience: s.audience, changed: func() { s.wants.changedForAll() }, credit: maxCredit}

	s.wireWants(cfg.NodesMeasure)
	s.wireDecisions(cfg)
	application := &attunev1.Application{
		SessionId: cfg.ID, Command: slices.Clone(cfg.Command), Mode: cfg.Core.Mode.String(), TickNanos: int64(cfg.Tick),
	}
	s.wireTunlets(cfg, application)
	s.wireConnections(cfg)
	s.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Header{Header: &attunev1.RecordingHeader{
		Version: cfg.Version, StartUnixNano: s.start.UnixNano(), Application: proto.CloneOf(application), Inherited: cfg.Inherit,
		Objective: proto.CloneOf(cfg.Core.Objective),
	}}})
	return s
}

// wireWants makes who there is, and what is wanted of them.
func (s *Session) wireWants(objective string) {
	s.processes = newProcesses()
	s.controllers = &controllers{byID: map[string]*controller{}, made: func(c *controller) { s.points.offer(c) }}
	s.wants = &wants{
		clock: s.clock, controllers: s.controllers, processes: s.processes,
		parties: map[party]bool{}, due: map[*controller]bool{}, objective: objective,
	}
	s.points = &points{pointSet: newPointSet(), clock: s.clock, teller: s.teller, processes: s.processes, wants: s.wants}
	s.askers = &askers{
		inbox: s.inbox, teller: s.teller, processes: s.processes, points: s.points, wants: s.wants, hurry: s.pace.hurry,
	}
}

// wireDecisions makes what decides, what is inherited, and who sleeps until needed.
func (s *Session) wireDecisions(cfg Config) {
	s.decider = &decider{
		clock: s.clock, teller: s.teller, core: core.New(cfg.Core), processes: s.processes, lease: cfg.Lease,
		hurry: s.pace.hurry, running: func(name string) *tunlet { return s.tunlets.running[name] },
		requests: map[string]*request{},
	}
	s.inheritance = &inheritance{
		teller: s.teller, processes: s.processes, decider: s.decider, awaited: map[string]*attunev1.KeptChange{},
		lease: cfg.ProvenLease,
	}
	s.sleepers = &sleepers{
		teller: s.teller, wants: s.wants, hurry: s.pace.hurry,
		wake: map[string]func(){}, waking: map[string][]*attunev1.SampleBatch{}, needed: map[string]string{},
	}
	s.wants.join(s.sleepers)
	for _, k := range cfg.Inherit {
		s.inheritance.awaited[k.GetId()] = k
		s.sleepers.needed[k.GetTunlet()] = "woken: a change of its own is in force"
	}
}

// wireTunlets makes those who run, and those who are told of processes.
func (s *Session) wireTunlets(cfg Config, application *attunev1.Application) {
	s.losses = &losses{inbox: s.inbox, teller: s.teller, told: map[string]uint64{}, before: map[string]uint64{}}
	s.tunlets = &tunlets{
		clock: s.clock, inbox: s.inbox, teller: s.teller, log: cfg.Log, processes: s.processes, points: s.points, wants: s.wants,
		decider: s.decider, sleepers: s.sleepers, losses: s.losses, hurry: s.pace.hurry, application: application,
		timeout: cfg.callTimeout, workers: &s.workers, running: map[string]*tunlet{},
	}
	s.population = &population{
		clock: s.clock, teller: s.teller, processes: s.processes, wants: s.wants, points: s.points, askers: s.askers,
		decider: s.decider, inheritance: s.inheritance, sleepers: s.sleepers, tunlets: s.tunlets,
		knowledge: &knowledge{
			inbox: s.inbox, workers: &s.workers, decider: s.decider, sleepers: s.sleepers, known: cfg.Known, recalled: map[string]bool{},
		},
		hurry: s.pace.hurry, application: application,
	}
}

// wireConnections makes what takes in what controllers say.
func (s *Session) wireConnections(cfg Config) {
	s.connections = &connections{
		clock: s.clock, inbox: s.inbox, waiters: s.waiters, teller: s.teller, log: cfg.Log, controllers: s.controllers,
		processes: s.processes, wants: s.wants, points: s.points, decider: s.decider, inheritance: s.inheritance,
		population: s.population, hurry: s.pace.hurry, grace: cfg.Grace, refused: map[string]bool{},
	}
	s.router = &router{
		clock: s.clock, inbox: s.inbox, teller: s.teller, controllers: s.controllers, processes: s.processes,
		population: s.population, sleepers: s.sleepers, tunlets: s.tunlets, sampled: s.tickWithSamples, part: cfg.Part,
	}
}
