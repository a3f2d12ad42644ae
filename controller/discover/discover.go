// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Ways to learn of processes, as [Status] names them.
const (
	// ModeWatch is by events of the kernel: no process is too short-lived.
	ModeWatch = "watch"
	// ModePoll is by looking through /proc.
	ModePoll = "poll"
)

// DefaultPollInterval is how often /proc is looked through without events.
const DefaultPollInterval = time.Second

// Found is a process that a registration means.
type Found struct {
	// Registration that it is given to. It must not be changed.
	Registration *attunev1.Registration
	// Process as far as it is known: no handle, host, objects or mechanisms,
	// the digest only if it is known already.
	Process *attunev1.Process
	// Held is the process, open; the handler closes it. Nil for one that ended
	// before it could be held; others may have ended by now as well.
	Held *procid.Process
	// Job is the execution that it belongs to.
	Job *attunev1.Job
	// Batch says that the batch system started it.
	Batch bool
}

// Handler is told of processes, one call at a time. It must neither block nor
// call the Watcher's methods.
type Handler interface {
	// Found gives a process. If the handler takes it, it and what it forks are
	// given to nobody else; if not (it returns false), another registration may
	// have it.
	Found(Found) (taken bool)
	// Mismatch tells of a process that has the name of a registered application
	// and another checksum, once.
	Mismatch(*attunev1.Mismatch)
}

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
	// Handler is needed.
	Handler Handler
	// Log may be nil.
	Log *slog.Logger
}

// Watcher finds processes. Its methods may be called from any goroutine but
// that of the Handler.
type Watcher struct {
	options Options
	log     *slog.Logger
	ways    []way
	hub     *hub
	state   *state

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
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.PollInterval <= 0 {
		options.PollInterval = DefaultPollInterval
	}
	if options.Digests == nil {
		options.Digests = objfile.NewDigests(objfile.DigestsOptions{})
	}
	if options.Batch == nil {
		options.Batch = Profiles()
	}
	log := options.Log.With("component", "discover")
	own, err := ownProgram()
	if err != nil {
		return nil, err
	}
	hub := newHub(log)
	return &Watcher{
		options: options, log: log, ways: waysOf(options), hub: hub, state: newState(options, hub, own, log),
		registered: make(chan []*attunev1.Registration, 1),
	}, nil
}

// SetRegistrations says what is looked for from now on. Running processes are
// looked at, too. It does not wait; the messages must not be changed any more.
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

// Source returns a view of the stream: what happens to the processes that are
// added to it and their descendants. A tracker runs and closes it. Views made
// before Run are empty until then.
func (w *Watcher) Source() track.Source { return w.hub.newView() }

// Run finds processes until ctx ends, and then returns nil.
func (w *Watcher) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.stream(ctx) })
	group.Go(func() error { w.state.hash(ctx); return nil })
	group.Go(func() error { w.loop(ctx); return nil })
	return group.Wait()
}

// lostInterval is how often it is looked whether events were lost.
const lostInterval = time.Second

// loop is the only goroutine that touches the state.
func (w *Watcher) loop(ctx context.Context) {
	s := w.state
	defer s.close()
	tick := time.NewTicker(lostInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case registrations := <-w.registered:
			s.register(registrations)
		case e := <-w.hub.candidates:
			s.executed(e)
		case <-w.hub.rescan:
			s.scan()
		case result := <-s.hashed:
			s.checked(result)
		case <-tick.C:
			s.tick(w.hub.lost())
		}
	}
}
