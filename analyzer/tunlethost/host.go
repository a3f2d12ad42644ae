// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
)

// Observer is told about tunlets. Its methods may block for a while, but must
// return when the host is stopped.
type Observer interface {
	// TunletReady hands over a tunlet that answers calls.
	TunletReady(t *Tunlet)
	// TunletGone tells that a tunlet handed over has ended. final is set if it
	// will not come back.
	TunletGone(name, reason string, final bool)
}

// Options configures a Host. Zero values mean the defaults given.
type Options struct {
	// Dirs are the directories with tunlets, the first one wins.
	Dirs []string
	// Names are the tunlets to start; empty: all that are found.
	Names []string
	// Config is each tunlet's configuration by its name.
	Config map[string]map[string]string
	// TempDir is where sockets are put, each in a private directory; empty:
	// the system's.
	TempDir string
	// Digests remembers the tunlets' checksums; nil: one of the host's own.
	Digests *objfile.Digests
	// StartTimeout bounds a start; 0: 5 s. A start takes 0.1 s of CPU time, but
	// it competes with an application that may fill every core several times
	// over: with eight runnable tasks on two cores it took more than 2 s.
	StartTimeout time.Duration
	// MaxFailures is how often a tunlet may fail before it is put into
	// quarantine; 0: 4.
	MaxFailures int
	// Pause is the pause before the first restart, doubled at each further
	// one up to 32 times; 0: 100 ms.
	Pause time.Duration
	// Stable is how long a tunlet must have run for its failures to be
	// forgotten; 0: one minute.
	Stable time.Duration
	// Log takes what the host and the tunlets say; nil: nothing is logged.
	Log *slog.Logger
}

// withDefaults returns o with zero values replaced.
func (o Options) withDefaults() Options {
	if o.StartTimeout == 0 {
		o.StartTimeout = 5 * time.Second
	}
	if o.MaxFailures == 0 {
		o.MaxFailures = 4
	}
	if o.Pause == 0 {
		o.Pause = 100 * time.Millisecond
	}
	if o.Stable == 0 {
		o.Stable = time.Minute
	}
	if o.Digests == nil {
		o.Digests = objfile.NewDigests(objfile.DigestsOptions{})
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// The states of a tunlet.
const (
	// StateStarting: its process is being started.
	StateStarting = "starting"
	// StateRunning: it answers calls.
	StateRunning = "running"
	// StateRestarting: it failed and will be started again.
	StateRestarting = "restarting"
	// StateStopped: ended with the host.
	StateStopped = "stopped"
	// StateQuarantined: it failed too often.
	StateQuarantined = "quarantined"
	// StateRefused: it must not or can not be run.
	StateRefused = "refused"
	// StateMissing: there is no such binary.
	StateMissing = "missing"
)

// Status is what a host knows of a tunlet.
type Status struct {
	// Name is the tunlet's name.
	Name string
	// Version and Summary are its own; empty before it has answered.
	Version, Summary string
	// Path is its binary.
	Path string
	// SHA256 is the checksum of the binary, hex; empty before it was started.
	SHA256 string
	// State is one of the states above.
	State string
	// Reason is the last failure, or why it is not run.
	Reason string
	// Restarts counts how often it was started again.
	Restarts int
	// PeakRSS is the greatest resident memory of its processes, bytes.
	PeakRSS uint64
}

// Host starts and supervises tunlets. Its methods are safe for use by several
// goroutines.
type Host struct {
	opts     Options
	observer Observer
	identity *identity // of the host in this run; set by Start
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu     sync.Mutex // leaf lock; guards what follows
	status []*Status
}

// New returns a host that reports to the observer. Nothing is started yet.
func New(opts Options, observer Observer) *Host {
	return &Host{opts: opts.withDefaults(), observer: observer}
}

// Start looks for tunlets and starts all of them in the background. It returns
// the names that were asked for and are not there or refused, with reasons, as
// one error; the others run nevertheless. Start is called once. The end of ctx
// ends all tunlets.
func (h *Host) Start(ctx context.Context) error {
	identity, err := newIdentity()
	if err != nil {
		return fmt.Errorf("tunlets cannot be started: make a certificate: %w", err)
	}
	h.identity = identity
	ctx, h.cancel = context.WithCancel(ctx)
	var errs []error
	for _, c := range Find(h.opts.Dirs, h.opts.Names) {
		st := &Status{Name: c.Name, Path: c.Path, State: StateStarting}
		h.mu.Lock()
		h.status = append(h.status, st)
		h.mu.Unlock()
		if c.Err != nil {
			h.refuse(st, c.Err)
			errs = append(errs, fmt.Errorf("tunlet %s: %w", c.Name, c.Err))
			continue
		}
		h.wg.Go(func() { h.supervise(ctx, c, st) })
	}
	return errors.Join(errs...)
}

// refuse marks a tunlet that is not started.
func (h *Host) refuse(st *Status, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st.State, st.Reason = StateRefused, err.Error()
	var missing *missingError
	if errors.As(err, &missing) {
		st.State = StateMissing
	}
}

// Stop kills all tunlets and waits until they are gone: some milliseconds. It
// may be called more than once, and after a Start that failed.
func (h *Host) Stop() {
	if h.cancel != nil {
		h.cancel()
	}
	h.wg.Wait()
}

// Status returns what is known of all tunlets, those missing included.
func (h *Host) Status() []Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Status, len(h.status))
	for i, st := range h.status {
		out[i] = *st
	}
	return out
}

// supervise starts a tunlet, again and again, until ctx ends or it has failed
// too often.
func (h *Host) supervise(ctx context.Context, c Candidate, st *Status) {
	log := h.opts.Log.With("tunlet", c.Name)
	s := &starter{
		name: c.Name, path: c.Path, options: h.opts.Config[c.Name],
		tempDir: h.opts.TempDir, timeout: h.opts.StartTimeout, log: log,
		digests: h.opts.Digests, host: h.identity,
	}
	failures := 0
	for {
		began := time.Now()
		err := h.runOnce(ctx, s, st, func() bool {
			return ctx.Err() != nil || failures+1 >= h.opts.MaxFailures && time.Since(began) <= h.opts.Stable
		})
		if ctx.Err() != nil {
			h.set(st, func() { st.State = StateStopped })
			return
		}
		if time.Since(began) > h.opts.Stable {
			failures = 0
		}
		failures++
		if !h.again(ctx, st, log, failures, err) {
			return
		}
	}
}

// again waits before the next start. It returns false if there is none.
func (h *Host) again(ctx context.Context, st *Status, log *slog.Logger, failures int, err error) bool {
	switch {
	case errors.Is(err, errPermanent):
		h.set(st, func() { st.State, st.Reason = StateRefused, err.Error() })
		log.Warn("tunlet refused; its problem goes untuned", "error", err)
		return false
	case failures >= h.opts.MaxFailures:
		h.set(st, func() {
			st.State, st.Reason = StateQuarantined, fmt.Sprintf("failed %d times, the last time: %v", failures, err)
		})
		log.Warn("tunlet put into quarantine; its problem goes untuned", "failures", failures, "error", err)
		return false
	}
	h.set(st, func() { st.State, st.Reason = StateRestarting, err.Error() })
	pause := h.opts.Pause << min(failures-1, 5)
	log.Info("tunlet failed", "error", err, "restart_in", pause)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		h.set(st, func() { st.Restarts++ })
		return true
	case <-ctx.Done():
		h.set(st, func() { st.State = StateStopped })
		return false
	}
}

// runOnce starts a tunlet and returns when it has ended, with the reason. last
// tells at that time whether it will not be started again.
func (h *Host) runOnce(ctx context.Context, s *starter, st *Status, last func() bool) error {
	t, err := s.start(ctx)
	h.set(st, func() { st.SHA256 = s.sum })
	if err != nil {
		return err
	}
	h.set(st, func() {
		st.State, st.Version, st.Summary = StateRunning, t.info.GetVersion(), t.info.GetSummary()
	})
	h.observer.TunletReady(t)
	h.watch(ctx, t, st)
	reason := t.ended()
	h.set(st, func() { st.PeakRSS = max(st.PeakRSS, t.proc.rss.Load()) })
	h.observer.TunletGone(s.name, reason, last())
	return errors.New(reason)
}

// watch waits for a tunlet's end, and causes it when ctx ends. It looks at the
// memory once a second.
func (h *Host) watch(ctx context.Context, t *Tunlet, st *Status) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			t.Kill("stopped with the session")
			return
		case <-t.proc.exited:
			return
		case <-second.C:
			rss := peakRSS(t.proc.pid)
			h.set(st, func() { st.PeakRSS = max(st.PeakRSS, rss) })
		}
	}
}

// set changes a status under the lock.
func (h *Host) set(st *Status, change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}
