// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

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
	if s.joined.Analyzer == nil {
		s.out.notes(s.notes.Lines())
		return
	}
	r := s.account(ctx, reportExit(exit), nil)
	s.addProgram(r, exit)
	r.Overhead.ProgramCPUSeconds = cpuSeconds(exit.Rusage)
	s.out.write(r, s.notes.Lines())
}

// account ends Analyzer and controller and returns the report; see
// [local.Session.Finish] for leave.
func (s *session) account(ctx context.Context, exit report.Exit, leave func(context.Context)) *report.Report {
	if s.live != nil {
		s.live.Pause()
	}
	s.begun.Wait()
	r := s.joined.Finish(ctx, exit, leave)
	s.cancel()
	s.work.Wait()
	s.addOwnCost(r)
	return r
}

// addOwnCost puts into a report what this process has taken up to now: more than
// its controller could say before it ended.
func (s *session) addOwnCost(r *report.Report) {
	var own unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &own); err != nil {
		s.log.Debug("own usage", "error", err)
		return
	}
	r.Overhead.SetController(cpuSeconds(own))
}

// cpuSeconds is the CPU time that a usage of resources tells of.
func cpuSeconds(u unix.Rusage) float64 {
	return (time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())).Seconds()
}

// abandon takes down what was built for a program that did not start.
func (s *session) abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	s.joined.Stop(ctx)
	s.cancel()
	s.work.Wait()
}

// close frees what openSession and connect made.
func (s *session) close() {
	s.cancel() // the channels of a session that did not get to its end
	errs := []error{s.joined.Close()}
	if s.dir != nil {
		errs = append(errs, s.dir.Remove())
	}
	errs = append(errs, s.knowledge.Close())
	s.out.close()
	if err := errors.Join(errs...); err != nil {
		s.log.Debug("clean up", "error", err)
	}
	_ = s.closeLog()
}
