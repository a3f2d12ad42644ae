// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net"
	"runtime"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/launch"
)

// endTimeout is how long undoing and reporting may take; giveUp is when this
// process ends without having reported, because some part did not keep to it.
const (
	endTimeout = 5 * time.Second
	giveUp     = 3 * endTimeout
)

// end reports, and leaves everything as it was. A second terminating signal
// cuts it short.
func (s *session) end(exit launch.Exit, signals *launch.Signals) {
	signals.AllowStop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
		defer cancel()
		s.finish(ctx, exit)
	}()
	select {
	case <-done:
	case <-signals.Second(done):
	case <-time.After(giveUp):
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		s.log.Error("the end took too long, there is no report", "goroutines", string(stacks))
		s.out.notes([]string{"the end took too long, there is no report; --log-file tells where it hangs"})
	}
}

func (s *session) finish(ctx context.Context, exit launch.Exit) {
	if s.analyzer == nil {
		s.out.notes(s.notes.Lines())
		return
	}
	r := s.account(ctx, reportExit(exit), func(context.Context) {})
	s.addProgram(r, exit)
	s.out.write(r, s.notes.Lines())
}

// account ends Analyzer and controller and returns the report: first the
// changes in what still runs, while the two can talk; then what leave gives
// back; then all that the controller still has; then the account.
func (s *session) account(ctx context.Context, exit report.Exit, leave func(context.Context)) *report.Report {
	if s.live != nil {
		s.live.Pause()
	}
	s.settle(ctx)
	leave(ctx)
	s.stopController(ctx)
	r := s.analyzer.Finish(ctx, exit)
	s.cancel()
	s.work.Wait()
	return r
}

// settle takes changes back in what still runs.
func (s *session) settle(ctx context.Context) {
	s.begun.Wait()
	if err := s.analyzer.Settle(ctx); err != nil {
		s.log.Warn("not everything was settled at the end", "error", err)
	}
}

// stopController ends the controller, once; whoever comes second waits for it.
func (s *session) stopController(ctx context.Context) {
	if s.controller == nil {
		return
	}
	s.stopped.Do(func() {
		if err := s.controller.Stop(ctx); err != nil {
			s.log.Warn("the controller did not end in time", "error", err)
		}
	})
}

// abandon takes down what was built for a program that did not start.
func (s *session) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	s.stopController(ctx)
	if s.analyzer != nil {
		s.analyzer.Stop(ctx)
	}
	s.cancel()
	s.work.Wait()
}

// close frees what open and build made.
func (s *session) close() {
	var errs []error
	if s.listener != nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.dir != nil {
		errs = append(errs, s.dir.Remove())
	}
	errs = append(errs, s.knowledge.close())
	s.out.close()
	if err := errors.Join(errs...); err != nil {
		s.log.Debug("clean up", "error", err)
	}
	_ = s.closeLog()
}
