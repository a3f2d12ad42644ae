// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/queue"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/turns"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// DefaultPollInterval is how often /proc is looked through without events.
const DefaultPollInterval = time.Second

// Options of a Watcher.
type Options struct {
	// Prefer is [ModeWatch] or [ModePoll]; "": watch.
	Prefer string
	// PollInterval for want of events; 0: [DefaultPollInterval].
	PollInterval time.Duration
	// Batch are the batch systems whose jobs are told apart; nil: [Profiles].
	Batch []Profile
	// Digests remembers checksums; nil: a cache of its own.
	Digests *objfile.Digests
	// Readers read what belongs to processes and users; nil: this process does.
	Readers *readers.Pool
	// Turns is told that processes are looked for; nil: nobody is.
	Turns *turns.Board
	// Changed is called when processes are found another way than before, and when
	// they are found at all; nil: nobody wants to know.
	Changed func()
	// Handler is needed.
	Handler Handler
	// Log may be nil.
	Log *slog.Logger
}

// Watcher finds processes. Its methods may be called from any goroutine but
// that of the Handler.
type Watcher struct {
	hub      *hub
	listener *listener
	checker  *checker
	board    *statusBoard
	turns    *turns.Board
	state    *state

	registered chan []*attunev1.Registration // the newest set, at most one
}

// New checks the options. The caller calls Run, once.
func New(options Options) (*Watcher, error) {
	switch {
	case options.Handler == nil:
		return nil, errors.New("discovery needs a handler")
	case options.Prefer != "" && options.Prefer != ModeWatch && options.Prefer != ModePoll:
		return nil, errors.New(`discovery is by "watch" or "poll"`)
	}
	options.Log = cmp.Or(options.Log, slog.New(slog.DiscardHandler))
	if options.PollInterval <= 0 {
		options.PollInterval = DefaultPollInterval
	}
	if options.Digests == nil {
		options.Digests = objfile.NewDigests("")
	}
	if options.Batch == nil {
		options.Batch = Profiles()
	}
	if options.Changed == nil {
		options.Changed = func() {}
	}
	log := options.Log.With("component", "discover")
	own, err := ownProgram()
	if err != nil {
		return nil, err
	}
	boot, _ := procid.BootID() // the same for all: only for other nodes
	hub, registered, board, checker := newHub(), new(registered), new(statusBoard), newChecker(options.Readers, options.Digests, log)
	decide := &decider{
		registered: registered, gifts: make(gifts), hub: hub,
		describer: &describer{readers: options.Readers, boot: boot}, examiner: newExaminer(),
		batch:   &batchLookup{profiles: options.Batch, known: make(map[key]time.Time)},
		checker: checker, own: own, board: board, handler: options.Handler, log: log,
	}
	return &Watcher{
		hub: hub, listener: &listener{ways: waysOf(options.Prefer, options.PollInterval), hub: hub, changed: options.Changed, log: log},
		checker: checker, board: board, turns: options.Turns,
		state:      &state{log: log, hub: hub, registered: registered, decider: decide, board: board, sweepAt: leastSweep},
		registered: make(chan []*attunev1.Registration, 1),
	}, nil
}

// SetRegistrations says what is looked for from now on. Running processes are looked at,
// too, if that is new. It does not wait; the messages must not be changed any more.
func (w *Watcher) SetRegistrations(registrations []*attunev1.Registration) {
	for {
		select {
		case w.registered <- registrations:
			return
		default:
		}
		select { // an older set that nobody has taken yet
		case <-w.registered:
		default:
		}
	}
}

// Source returns a user's view of the stream: what happens to the processes that are
// added to it and their descendants. A tracker runs and closes it. Views made
// before Run are empty until then.
func (w *Watcher) Source(uid uint32) track.Source { return w.hub.newView(uid) }

// Account has the kernel account for a process that has been handed over, and for what
// comes of it, from its next exec on: when it is added to a source it may have run already.
func (w *Watcher) Account(pid int) error { return w.hub.account(pid) }

// Run finds processes until ctx ends, and then returns nil.
func (w *Watcher) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.listener.run(ctx) })
	examiner := w.state.decider.examiner
	examiner.ctx, w.checker.ctx = ctx, ctx
	group.Go(func() error { w.loop(ctx); return nil })
	err := group.Wait()
	examiner.group.Wait()
	w.checker.close()
	return err
}

// standsAfter is how long one look may take: that at registrations, for which the directory
// of users is asked, takes some seconds.
const standsAfter = 30 * time.Second

// lostInterval is how often it is looked whether events were lost.
const lostInterval = time.Second

// loop is the only goroutine that touches the state.
func (w *Watcher) loop(ctx context.Context) {
	s := w.state
	var lifted queue.Bell
	if by := s.decider.describer.readers; by != nil {
		lifted = by.Lifted
	}
	tick := time.NewTicker(lostInterval)
	defer tick.Stop()
	loop := w.turns.Begin("discovery", standsAfter, true)
	defer loop.End()
	for {
		loop.Turn()
		select {
		case <-ctx.Done():
			return
		case registrations := <-w.registered:
			s.register(registrations)
		case e := <-w.hub.candidates:
			s.decider.executed(e, 0)
		case found := <-s.decider.examiner.examined:
			s.examined(found)
		case <-lifted:
			s.lifted()
		case <-w.hub.rescan:
			s.scan()
		case result := <-w.checker.hashed:
			s.decider.checked(result)
		case <-tick.C:
			s.tick(w.hub.lost())
		}
	}
}

// Status returns how things are.
func (w *Watcher) Status() Status {
	status, running := w.hub.status()
	w.board.addTo(&status, running)
	return status
}
