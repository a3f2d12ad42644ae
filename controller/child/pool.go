// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/metrics"
)

// Options say what the processes of sessions are.
type Options struct {
	// Program is what is executed, with its arguments; nil: this program, with
	// [Word].
	Program []string
	// Metrics takes what is counted; nil: nobody asks.
	Metrics *metrics.Registry
	// Log may be nil.
	Log *slog.Logger
}

// Pool starts processes for sessions, one ahead, so that none waits for it.
type Pool struct {
	program []string
	log     *slog.Logger
	metrics *metrics.Registry
	ready   chan started
	relayed atomic.Int64 // connections that are open
}

// started is what came of a start.
type started struct {
	process *process
	err     error
}

// NewPool returns a Pool that starts nothing before Run.
func NewPool(o Options) *Pool {
	if o.Program == nil {
		o.Program = []string{"/proc/self/exe", Word}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Pool{program: o.Program, metrics: o.Metrics, log: o.Log.With("component", "sessions"), ready: make(chan started)}
}

// Connections counts those of all sessions to Analyzers.
func (p *Pool) Connections() int { return int(p.relayed.Load()) }

// Run starts processes as they are wanted, until ctx ends. All of them end when it
// returns.
func (p *Pool) Run(ctx context.Context) {
	confine.Apart(func(err error) {
		if err != nil {
			p.log.Error("processes of sessions keep rights that they do not need", "error", err)
		}
		p.serve(ctx)
	}, confine.Rights{Keep: needed()})
}

// serve hands out processes.
func (p *Pool) serve(ctx context.Context) {
	for ctx.Err() == nil {
		next, err := startProcess(p.program)
		select {
		case p.ready <- started{next, err}:
		case <-ctx.Done():
			if err == nil {
				endIdle(next)
			}
		}
	}
}

// endPatience is how long a process may take to end that has nothing to do.
const endPatience = 2 * time.Second

func endIdle(p *process) {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	_ = p.end(ctx) // whatever it did
}

// take returns a process that has nothing to do yet.
func (p *Pool) take(ctx context.Context) (*process, error) {
	for {
		select {
		case next := <-p.ready:
			if next.err == nil && next.process.over() {
				endIdle(next.process)
				continue
			}
			return next.process, next.err
		case <-ctx.Done():
			return nil, fmt.Errorf("process of a session: %w", ctx.Err())
		}
	}
}

// over says whether a process has ended, though nobody has asked it to.
func (p *process) over() bool {
	select {
	case <-p.waited:
		return true
	default:
		return false
	}
}
