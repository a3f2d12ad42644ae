// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/attune-hpc/attune/internal/confine"
	"github.com/attune-hpc/attune/internal/metrics"
)

// Options say what the processes of sessions are.
type Options struct {
	// Program is what is executed, with its arguments; nil: this program, with
	// [Word].
	Program []string
	// Late is called when a session's process has ended at last that was left behind: its
	// journal can be read from then on. It may be nil.
	Late func()
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
	late    func()
	ready   chan started
	guards  chan guarded
	relayed atomic.Int64 // connections that are open
	// guarding is what guards read until this process is gone; of the goroutine of Run.
	// A file that nobody can reach is closed.
	guarding []io.Closer
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
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Late == nil {
		o.Late = func() {}
	}
	return &Pool{program: o.Program, metrics: o.Metrics, late: o.Late, log: o.Log.With("component", "sessions"), ready: make(chan started), guards: make(chan guarded)}
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
		p.offer(ctx, started{next, err})
	}
}

// offer hands out a process, or ends it with ctx.
func (p *Pool) offer(ctx context.Context, next started) {
	for {
		select {
		case p.ready <- next:
			return
		case g := <-p.guards:
			p.startGuard(g)
		case <-ctx.Done():
			if next.err == nil {
				endIdle(next.process)
			}
			return
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

// take returns a process that has nothing to do yet. One that could not be started may have
// waited for hours, so the next start decides.
func (p *Pool) take(ctx context.Context) (*process, error) {
	for failed := false; ; {
		select {
		case next := <-p.ready:
			switch {
			case next.err == nil && next.process.over():
				endIdle(next.process)
			case next.err != nil && !failed:
				failed = true
			default:
				return next.process, next.err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("process of a session: %w", ctx.Err())
		}
	}
}

// guarded asks for a guard.
type guarded struct {
	dir    string
	until  time.Duration
	answer chan error
}

// Guard starts a process that outlives this one, and undoes what is then held for the
// next controller in a directory of journals, at a time since boot. It ends when nothing
// is held any more. Run runs it with the rights of a session.
func (p *Pool) Guard(ctx context.Context, dir string, until time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, guardPatience)
	defer cancel()
	g := guarded{dir, until, make(chan error, 1)}
	select {
	case p.guards <- g:
	case <-ctx.Done():
		return fmt.Errorf("guard: %w", ctx.Err())
	}
	select {
	case err := <-g.answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("guard: %w", ctx.Err())
	}
}

// startGuard starts a guard, and answers when it guards or has ended.
func (p *Pool) startGuard(g guarded) {
	words := append(slices.Clone(p.program[1:len(p.program)-1]), GuardWord, g.dir, strconv.FormatInt(int64(g.until), 10))
	command := exec.Command(p.program[0], words...)
	command.Stderr = os.Stderr // the log of the service
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := command.StdinPipe()
	var stdout io.ReadCloser
	if err == nil {
		stdout, err = command.StdoutPipe()
	}
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		g.answer <- fmt.Errorf("guard: %w", err)
		return
	}
	p.guarding = append(p.guarding, stdin)
	go func() { // ends with the guard's first word, or with the guard
		_, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil {
			err = fmt.Errorf("guard: it has ended: %w", errors.Join(stdin.Close(), command.Wait()))
		}
		g.answer <- err
	}()
}
