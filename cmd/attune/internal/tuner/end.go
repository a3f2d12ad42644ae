// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/attune-hpc/attune/analyzer/channel"
	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/launch"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// EndTimeout is how long undoing and reporting may take; giveUp is when this
// process ends without having reported, because some part did not keep to it, nor to its own
// limit (see analyzer.Analyzer.Stop).
const (
	EndTimeout = 5 * time.Second
	giveUp     = EndTimeout + channel.HelloPatience + 10*time.Second
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
	s.Out.Write(s.Account(ctx, s.recordedExit(ctx, exit, time.Now()), nil), s.Notes.Lines())
}

// Account ends Analyzer and controller and returns the report; see
// [local.Session.Finish] for end and leave.
func (s *Tuner) Account(ctx context.Context, end *attunev1.RecordedExit, leave func(context.Context)) *report.Report {
	if s.Live != nil {
		s.Live.Pause()
	}
	s.Begun.Wait()
	r := s.Joined.Finish(ctx, end, leave)
	s.Cancel()
	s.Work.Wait()
	return r
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
	if s.accountant != nil {
		errs = append(errs, s.accountant.Close())
	}
	s.Out.close()
	if err := errors.Join(errs...); err != nil {
		s.Log.Debug("clean up", "error", err)
	}
	_ = s.closeLog()
}
