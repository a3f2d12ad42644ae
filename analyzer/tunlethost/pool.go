// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// maxBegins bounds the tunlets that are begun at one time: what begins in a thousand
	// sessions at once, such as trouble with a file system, is to be late in some and
	// not to time out in all.
	maxBegins = 16
	// idleFor is how long a process stays that no tunlet runs in any more.
	idleFor = 5 * time.Second
)

// PoolOptions configure a Pool. Zero values mean the defaults given.
type PoolOptions struct {
	// Limits are those of each process; MemoryBytes grows with the tunlets in it.
	Limits Limits
	// TempDir is where sockets are put, each in a private directory; empty: the
	// system's.
	TempDir string
	// MaxOwn bounds the processes of tunlets that have one for themselves; what is to
	// be started beyond that waits; 0: there is no bound.
	MaxOwn int
	// Log takes what the processes say; nil: nothing is logged.
	Log *slog.Logger

	startTimeout time.Duration // as in Options
	idle         time.Duration // 0: idleFor
}

// Pool has the processes of the tunlets of an Analyzer, for all of its sessions: one
// for the tunlets of a package, which all sessions share, and those of others, which
// are counted. Its methods are safe for use by several goroutines.
type Pool struct {
	opts   PoolOptions
	host   *identity
	costs  *account
	begins chan struct{}         // has a place for each tunlet that is being begun
	own    *quota.Places[string] // of processes that serve one tunlet, by user; nil: no bound
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex // leaf lock; guards what follows, and what shared says
	current map[packageKey]*shared
	shared  int // processes that live
	closed  bool
}

// packageKey is a package of tunlets: a program, and what is in it.
type packageKey struct{ program, sum string }

// NewPool returns a pool without processes. Its maker calls Close.
func NewPool(opts PoolOptions) (*Pool, error) {
	host, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("tunlets cannot be started: make a certificate: %w", err)
	}
	return newPool(opts, host, newAccount()), nil
}

func newPool(opts PoolOptions, host *identity, costs *account) *Pool {
	opts.Limits = opts.Limits.withDefaults()
	opts.startTimeout = cmp.Or(opts.startTimeout, startTimeout)
	opts.idle = cmp.Or(opts.idle, idleFor)
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	p := &Pool{opts: opts, host: host, costs: costs, begins: make(chan struct{}, maxBegins), current: map[packageKey]*shared{}}
	if opts.MaxOwn > 0 {
		p.own = quota.NewPlaces[string](opts.MaxOwn, userShare)
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Close ends all processes that are shared, and waits for them. Hosts that use the
// pool are stopped before.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel()
	p.wg.Wait()
}

// Processes counts the processes that there are, or that are being started: those that
// are shared, and with MaxOwn the others.
func (p *Pool) Processes() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own == nil {
		return p.shared
	}
	return p.shared + p.own.Taken()
}

// userShare is which part of the places one user gets for certain: one in so many.
const userShare = 8

// admit waits for a place for a process that serves one tunlet in a session of a user.
func (p *Pool) admit(ctx context.Context, user string, log *slog.Logger) (release func(), err error) {
	if p.own == nil {
		return func() {}, nil
	}
	err = p.own.Take(ctx, user, func() {
		log.Warn("tunlet waits until processes of others have ended", "processes", p.opts.MaxOwn)
	})
	return func() { p.own.Leave(user) }, err
}

// enter returns the process that a package's tunlets are begun in, which is started
// where there is none, when it runs. The caller begins an instance in it.
func (p *Pool) enter(ctx context.Context, k packageKey) (*shared, error) {
	s, err := p.reserve(k)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.started:
	case <-ctx.Done():
		s.leave(nil)
		return nil, ctx.Err()
	}
	if s.err != nil {
		s.leave(nil)
		return nil, s.err
	}
	return s, nil
}

// reserve has the process of a package stay, or started. The caller calls its leave, or
// has an instance that does.
func (p *Pool) reserve(k packageKey) (*shared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the tunlets are being ended")
	}
	s := p.current[k]
	if s == nil {
		s = &shared{pool: p, key: k, started: make(chan struct{}), instances: map[*instance]bool{}}
		p.current[k] = s
		p.shared++
		p.wg.Go(s.live)
	}
	s.guests++
	return s, nil
}

// inBackground does something that Close waits for, unless that was called.
func (p *Pool) inBackground(do func(context.Context)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.wg.Go(func() { do(p.ctx) })
	}
}

// sharedProgram returns the program of the package that a tunlet belongs to; empty
// for one that has a process for itself: whatever is not a link to a program of the
// package's name.
func (s *starter) sharedProgram() string {
	if s.alone || s.Interpreter != "" {
		return ""
	}
	program, err := filepath.EvalSymlinks(s.Path)
	if err != nil || filepath.Base(program) != sdk.PackageProgram {
		return ""
	}
	return program
}
