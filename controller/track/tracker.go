// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// queued bounds the events between source and state; more wait in the source,
// whose own buffer counts what does not fit.
const queued = 256

// lastEvents bounds how long the end waits for a source that ends.
const lastEvents = 2 * time.Second

// Tracker follows the processes of one job. See the package's comment on
// goroutines.
type Tracker struct {
	options  Options
	log      *slog.Logger
	requests chan func(*state)
	stopped  chan struct{}
	hurry    atomic.Bool
	state    *state
}

// New checks the options. The caller calls Run, once.
func New(options Options) (*Tracker, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("host name: %w", err)
	}
	var self unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &self); err != nil {
		return nil, fmt.Errorf("own executable: %w", err)
	}
	t := &Tracker{
		options: options, log: options.Log.With("component", "track"),
		requests: make(chan func(*state)), stopped: make(chan struct{}),
	}
	boot, err := procid.BootID()
	if err != nil {
		return nil, err
	}
	t.state = newState(options, t.log, &t.hurry, host, boot, uint64(self.Dev), self.Ino)
	return t, nil
}

// Run follows processes until ctx ends, and then returns nil after all of its
// goroutines have ended. The Handler is told before of what the source knew by
// then and of processes that have ended, but not of an end of those that live on. A source that fails is
// logged and replaced by polling.
func (t *Tracker) Run(ctx context.Context) error {
	defer close(t.stopped)
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	events, sourceEnded := make(chan Event, queued), make(chan error, 1)
	handled, stopHandling := context.WithCancel(context.WithoutCancel(ctx))
	if t.options.Source != nil {
		group.Go(func() error {
			sourceEnded <- t.options.Source.Run(ctx, func(e Event) { post(handled, events, e) })
			return nil
		})
	}
	group.Go(func() error { t.state.hasher.run(ctx); return nil })
	group.Go(func() error {
		defer cancel()
		defer stopHandling()
		t.loop(ctx, events, sourceEnded)
		if t.state.feed.on {
			t.catchUp(events, sourceEnded)
		}
		t.state.scanner.endAll()
		return nil
	})
	err := group.Wait()
	t.state.close()
	if t.options.Source != nil {
		err = errors.Join(err, t.options.Source.Close())
	}
	return err
}

// post hands over a value unless the tracker ends.
func post[T any](ctx context.Context, to chan<- T, value T) {
	select {
	case to <- value:
	case <-ctx.Done():
	}
}

// catchUp handles what the source still has when everything ends: without it
// the last processes of a job would be missing.
func (t *Tracker) catchUp(events <-chan Event, sourceEnded <-chan error) {
	patience := time.After(lastEvents)
	for {
		select {
		case e := <-events:
			t.state.event(e)
		case <-patience:
			return
		case err := <-sourceEnded:
			if err != nil {
				t.log.Warn("the last process events are missing", "error", err)
			}
			for len(events) > 0 {
				t.state.event(<-events)
			}
			return
		}
	}
}

// loop is the only goroutine that touches the state.
func (t *Tracker) loop(ctx context.Context, events <-chan Event, sourceEnded <-chan error) {
	s := t.state
	scan := time.NewTicker(t.options.PollInterval)
	defer scan.Stop()
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		// Requests first: a registration has a program waiting for it.
		select {
		case <-ctx.Done():
			return
		case request := <-t.requests:
			request(s)
			continue
		default:
		}
		due.Reset(s.agenda.untilDue())
		select {
		case <-ctx.Done():
			return
		case request := <-t.requests:
			request(s)
		case e := <-events:
			s.event(e)
		case p := <-s.watchers.exits:
			s.exited(p)
		case d := <-s.hasher.results:
			s.refresher.digest(d)
		case <-due.C:
			s.work()
		case <-scan.C:
			s.scanner.scan()
		case err := <-sourceEnded:
			s.sourceEnded(err)
			scan.Reset(DefaultPollInterval)
		}
	}
}

// do runs a request on the state's goroutine and waits for it.
func (t *Tracker) do(ctx context.Context, request func(*state)) error {
	done := make(chan struct{})
	select {
	case t.requests <- func(s *state) { defer close(done); request(s) }:
	case <-t.stopped:
		return ErrStopped
	case <-ctx.Done():
		return ctx.Err()
	}
	// It runs already, and nothing that it does waits for long.
	<-done
	return nil
}

// Follow makes a process a root of the job, with all that it forks and has
// forked, and returns the handle of its image. The Handler has been told when
// it returns. The process is followed even if it carries another job's id.
func (t *Tracker) Follow(ctx context.Context, pid int) (handle uint64, err error) {
	if e := t.do(ctx, func(s *state) { handle, err = s.follow(pid, nil) }); e != nil {
		return 0, e
	}
	return handle, err
}

// FollowProcess is Follow for a process that is held: [procid.ErrGone] if it
// has ended, whoever has its pid by now.
func (t *Tracker) FollowProcess(ctx context.Context, process *procid.Process) (handle uint64, err error) {
	meant := process.Identity()
	if e := t.do(ctx, func(s *state) { handle, err = s.follow(meant.PID, &meant) }); e != nil {
		return 0, e
	}
	return handle, err
}

// Registered says that DMLib in a process has registered itself, and returns
// the handle of the image; the Handler has been told of it before. A second
// registration of a pid means a new image. [procid.ErrGone] if the process has
// ended, [ErrForeign] if it must not be followed.
func (t *Tracker) Registered(ctx context.Context, pid int) (handle uint64, err error) {
	if e := t.do(ctx, func(s *state) { handle, err = s.registered(pid) }); e != nil {
		return 0, e
	}
	return handle, err
}

// Hurry says whether images are to be told of at once, rather than when they have
// lived for some milliseconds at less cost, as at first. It may be called at any
// time.
func (t *Tracker) Hurry(hurry bool) {
	t.hurry.Store(hurry)
	if source, can := t.options.Source.(interface{ Hurry(bool) }); can {
		source.Hurry(hurry)
	}
}

// Follows says whether the kernel itself follows a process, so that nothing of what
// it starts is missed, though the Handler may not have been told of it yet. False
// where the kernel does not tell. It may be called at any time.
func (t *Tracker) Follows(pid int) bool {
	source, can := t.options.Source.(interface{ Has(int) bool })
	return can && source.Has(pid)
}

// Sourced says whether the kernel tells what processes do; else /proc is polled.
func (t *Tracker) Sourced() bool { return t.options.Source != nil }
