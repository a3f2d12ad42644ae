// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Observer is told about tunlets. Its methods may block for a while, but must
// return when the host is stopped.
type Observer interface {
	// TunletAsleep tells of a tunlet that is not started before wake is called,
	// which does not wait: as soon as one of the conditions in its description
	// holds. TunletReady follows then, or TunletGone.
	TunletAsleep(info *attunev1.DescribeResponse, wake func())
	// TunletReady hands over a tunlet that answers calls.
	TunletReady(t *Tunlet)
	// TunletGone tells that a tunlet handed over has ended, or that one which was
	// asleep cannot be started.
	TunletGone(name, reason string)
}

// The states of a tunlet.
const (
	// StateStarting: its process is being started.
	StateStarting = "starting"
	// StateAsleep: it has not been of use yet, and no process of it is there.
	StateAsleep = "asleep"
	// StateRunning: it answers calls.
	StateRunning = "running"
	// StateRestarting: it failed and will be started again.
	StateRestarting = "restarting"
	// StateStopped: ended with the host; one that never answered stays in the state it was in.
	StateStopped = "stopped"
	// StateQuarantined: it failed too often, or took too much.
	StateQuarantined = "quarantined"
	// StateRefused: it must not or can not be run.
	StateRefused = "refused"
	// StateMissing: there is no such binary.
	StateMissing = "missing"
)

// Status is what a host knows of a tunlet.
type Status = attunev1.RecordedTunletState

// Host starts and supervises tunlets. Its methods are safe for use by several
// goroutines.
type Host struct {
	opts         Options
	observer     Observer
	descriptions descriptions
	identity     *identity // of the host in this run; set by prepare
	pool         *Pool     // set by prepare
	costs        *account
	cancel       context.CancelFunc
	wg           sync.WaitGroup
	unknown      chan struct{} // has a place for each start of a tunlet that is not known
	reading      sync.Mutex    // held while a tunlet's file is read; before mu

	mu     sync.Mutex // leaf lock; guards what follows
	status []*Status
	ended  bool // nothing is started any more
}

// New returns a host that reports to the observer. Nothing is started yet.
func New(opts Options, observer Observer) *Host {
	return &Host{
		opts: opts.withDefaults(), observer: observer,
		descriptions: descriptions(opts.DescriptionDir), unknown: make(chan struct{}, unknownStarts), costs: newAccount(),
	}
}

// Start looks for tunlets and starts all of them in the background, or as soon
// as they are of use. It returns
// the names that were asked for and are not there or refused, with reasons, as
// one error; the others run nevertheless. Start is called once. The end of ctx
// ends all tunlets.
func (h *Host) Start(ctx context.Context) error {
	if err := h.prepare(); err != nil {
		return err
	}
	ctx, h.cancel = context.WithCancel(ctx)
	var errs []error
	for _, c := range Find(h.opts.Dirs, h.opts.Names) {
		st := &Status{Tunlet: c.Name, Path: c.Path, State: StateStarting}
		h.mu.Lock()
		h.status = append(h.status, st)
		h.mu.Unlock()
		if c.Err != nil {
			h.refuse(st, c.Err)
			errs = append(errs, fmt.Errorf("tunlet %s: %w", c.Name, c.Err))
			continue
		}
		h.wg.Go(func() { h.supervise(ctx, h.starter(c), st) })
	}
	return errors.Join(errs...)
}

// wake has a tunlet supervised that sleeps, of which nobody takes care meanwhile: a
// site has thousands of them. It does not wait.
func (h *Host) wake(ctx context.Context, s *starter, st *Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		s.awake = true
		h.wg.Go(func() { h.supervise(ctx, s, st) })
	}
}

// prepare makes what tunlets are started with.
func (h *Host) prepare() (err error) {
	if h.identity, err = newIdentity(); err != nil {
		return fmt.Errorf("tunlets cannot be started: make a certificate: %w", err)
	}
	if h.pool = h.opts.Pool; h.pool == nil {
		h.pool = newPool(PoolOptions{
			Limits: h.opts.Limits, TempDir: h.opts.TempDir, Log: h.opts.Log, startTimeout: h.opts.startTimeout,
		}, h.identity, h.costs)
	}
	return nil
}

// refuse marks a tunlet that is not started.
func (h *Host) refuse(st *Status, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	st.State, st.Reason = StateRefused, err.Error()
	if _, missing := errors.AsType[*missingError](err); missing {
		st.State = StateMissing
	}
}

// Stop kills all tunlets and waits until they are gone: some milliseconds, and pipePatience
// where a descendant holds the output of one. It may be called more than once, and after
// a Start that failed.
func (h *Host) Stop() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	if h.cancel != nil {
		h.cancel()
	}
	h.wg.Wait()
	if h.opts.Pool == nil && h.pool != nil {
		h.pool.Close()
	}
}

// Status returns what is known of all tunlets, those missing included. It is the caller's.
func (h *Host) Status() []*Status {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]*Status, len(h.status))
	for i, st := range h.status {
		out[i] = proto.CloneOf(st)
	}
	return out
}

// Cost returns what all tunlets have taken so far; after Stop, to the end. Of a
// process that runs it is what it had taken a second ago at most.
func (h *Host) Cost() Cost { return h.costs.total() }

// starter returns what starts a tunlet.
func (h *Host) starter(c Candidate) *starter {
	log := h.opts.Log.With("tunlet", c.Name)
	program, arguments := c.command()
	copyOf := ""
	if program == c.Path {
		copyOf = c.CopyOf
	}
	return &starter{
		Candidate: c, options: h.opts.Config[c.Name], log: log, digests: h.opts.Digests, costs: h.costs, pool: h.pool, user: h.opts.User,
		launch: launcher{
			program: program, arguments: arguments, copyOf: copyOf, limits: h.opts.Limits, tempDir: h.opts.TempDir, timeout: h.opts.startTimeout,
			said: newLimitedLog(log), host: h.identity, costs: h.costs,
		},
	}
}

// set changes a status under the lock.
func (h *Host) set(st *Status, change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}
