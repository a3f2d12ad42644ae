// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"context"
	"errors"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/launch"
)

// EndTimeout is how long undoing and reporting may take; giveUp is when this
// process ends without having reported, because some part did not keep to it.
const (
	EndTimeout = 5 * time.Second
	giveUp     = 3 * EndTimeout
)

// End reports, and leaves everything as it was. A second terminating signal
// cuts it short.
func (s *Tuner) End(exit launch.Exit, signals *launch.Signals) {
	signals.AllowStop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(context.Background(), EndTimeout)
		defer cancel()
		s.finish(ctx, exit)
	}()
	select {
	case <-done:
	case <-signals.Second(done):
	case <-time.After(giveUp):
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		s.Log.Error("the end took too long, there is no report", "goroutines", string(stacks))
		s.Out.notes([]string{"the end took too long, there is no report; --log-file tells where it hangs"})
	}
}

func (s *Tuner) finish(ctx context.Context, exit launch.Exit) {
	if s.Joined.Analyzer == nil {
		s.Out.notes(s.Notes.Lines())
		return
	}
	r := s.Account(ctx, ReportExit(exit), nil)
	s.addProgram(r, exit)
	r.Overhead.ProgramCPUSeconds = cpuSeconds(exit.Rusage)
	s.Out.Write(r, s.Notes.Lines())
}

// Account ends Analyzer and controller and returns the report; see
// [local.Session.Finish] for leave.
func (s *Tuner) Account(ctx context.Context, exit report.Exit, leave func(context.Context)) *report.Report {
	if s.Live != nil {
		s.Live.Pause()
	}
	s.Begun.Wait()
	r := s.Joined.Finish(ctx, exit, leave)
	s.Cancel()
	s.Work.Wait()
	s.addOwnCost(r)
	return r
}

// addOwnCost puts into a report what this process has taken up to now: more than
// its controller could say before it ended.
func (s *Tuner) addOwnCost(r *report.Report) {
	var own unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &own); err != nil {
		s.Log.Debug("own usage", "error", err)
		return
	}
	r.Overhead.SetController(cpuSeconds(own))
}

// cpuSeconds is the CPU time that a usage of resources tells of.
func cpuSeconds(u unix.Rusage) float64 {
	return (time.Duration(u.Utime.Nano()) + time.Duration(u.Stime.Nano())).Seconds()
}

// Abandon takes down what was built for a program that did not start.
func (s *Tuner) Abandon() {
	ctx, cancel := context.WithTimeout(context.Background(), EndTimeout)
	defer cancel()
	s.Joined.Stop(ctx)
	s.Cancel()
	s.Work.Wait()
}

// Close frees what openSession and connect made.
func (s *Tuner) Close() {
	s.Cancel() // the channels of a session that did not get to its end
	errs := []error{s.Joined.Close()}
	if s.Dir != nil {
		errs = append(errs, s.Dir.Remove())
	}
	errs = append(errs, s.knowledge.Close())
	s.Out.close()
	if err := errors.Join(errs...); err != nil {
		s.Log.Debug("clean up", "error", err)
	}
	_ = s.closeLog()
}
