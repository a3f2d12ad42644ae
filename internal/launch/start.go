// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"syscall"
	"time"

	"github.com/attune-hpc/attune/internal/inherit"
)

// Command is a program to start.
type Command struct {
	// Args are the program and its arguments; Args[0] is looked up in PATH
	// and passed on as it is.
	Args []string
	// Env is the whole environment.
	Env []string
	// Signals are those that this process has caught; required.
	Signals *Signals
	// Stopping is called before this process stops with the program, Continued
	// when it was continued; both may be nil, both are called by Wait.
	Stopping, Continued func()
	// Fork, if not nil, is called with what forks the program, and calls it in the
	// same thread: between, the thread may be made what its child is to inherit.
	Fork func(fork func() error) error
	// Group is the descriptor of a control group of version 2 that the program is to
	// begin in, if the kernel lets it; 0: in this process's. With GroupOnly it is not
	// started elsewhere.
	Group     int
	GroupOnly bool
	// Ended, if not nil, is called by Wait when the program has ended and still is
	// there as a zombie.
	Ended func()
	// Log gets what is degraded; nil: nowhere.
	Log *slog.Logger
}

// InterruptedError tells that a signal came before the program was started.
type InterruptedError struct {
	// Signal is the one; this process should end by it.
	Signal syscall.Signal
}

// Error names the signal.
func (e *InterruptedError) Error() string {
	return fmt.Sprintf("interrupted before the start: %v", e.Signal)
}

// Start starts the program. An error is an *InterruptedError, an
// *exitcode.Error that wraps [objfile.ErrNotFound], code 127, or
// [objfile.ErrCannotExecute], code 126, as a shell tells them apart, or that of ctx,
// which is only looked at before the start: a running program is never ended
// from here. The caller must call Wait.
func Start(ctx context.Context, cmd Command) (*Child, error) {
	cmd.Log = cmp.Or(cmd.Log, slog.New(slog.DiscardHandler))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := &Child{signals: cmd.Signals, stopping: cmd.Stopping, continued: cmd.Continued, ended: cmd.Ended, log: cmd.Log.With("component", "launch")}
	c.group.log = c.log
	if cmd.Signals.state.Exact {
		var err error
		if c.group.witness, err = newWitness(); err != nil {
			c.log.Debug("signals are told apart by the terminal only", "error", err)
		}
	}
	err := cmd.Signals.asInherited(func() error {
		return search(cmd.Args, cmd.Env, func(path string, args []string) error {
			return c.forkExec(path, args, cmd)
		})
	})
	if err == nil {
		return c, nil
	}
	c.group.close()
	if interrupted, ok := errors.AsType[*InterruptedError](err); ok {
		return nil, interrupted
	}
	return nil, startError(cmd.Args[0], err)
}

func (c *Child) forkExec(path string, args []string, cmd Command) (err error) {
	attr := &syscall.ProcAttr{Env: cmd.Env, Files: []uintptr{0, 1, 2}}
	for fd := range attr.Files {
		if cmd.Signals.state.FDClosed(fd) {
			attr.Files[fd] = ^uintptr(0) // closed in the child
		}
	}
	if cmd.Group != 0 {
		attr.Sys = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: cmd.Group}
	}
	fork := func() error {
		// As late as can be: what the witness sees from now on, the program is taken to have got.
		if sig := cmd.Signals.pendingEnd(); sig != 0 {
			return &InterruptedError{Signal: sig}
		}
		started := time.Now()
		c.pid, err = syscall.ForkExec(path, args, attr)
		switch {
		case err == nil || attr.Sys == nil:
		case cmd.GroupOnly:
			err = fmt.Errorf("start in the control group: %w", err)
		default:
			// Perhaps only the group is refused: by the kernel, or by a filter of clone3.
			attr.Sys = nil
			c.pid, err = syscall.ForkExec(path, args, attr)
		}
		if err == nil {
			c.Path, c.Started, c.InGroup = path, started, attr.Sys != nil
		}
		return err
	}
	if cmd.Fork != nil {
		return cmd.Fork(fork)
	}
	return fork()
}

// Replace executes the program in place of this process, as Start would start
// it. It returns only with an error of Start's kinds. Nothing may be caught.
func Replace(args, env []string, state inherit.State) error {
	for _, sig := range state.Ignored.List() {
		if canIgnore(sig) {
			signal.Ignore(sig)
		}
	}
	for fd := range 3 {
		if state.FDClosed(fd) {
			_ = syscall.Close(fd)
		}
	}
	err := withMask(state.Blocked, func() error {
		return search(args, env, func(path string, args []string) error {
			return syscall.Exec(path, args, env)
		})
	})
	return startError(args[0], err)
}
