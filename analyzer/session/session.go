// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// renewEvery is how often leases are renewed.
const renewEvery = time.Second

// Session is one tuning session. Its exported methods are safe for use by
// several goroutines.
type Session struct {
	*clock
	*inbox
	*waiters
	*askers
	*connections
	*router

	tickEvery time.Duration
	ticks     <-chan time.Time // nil: a ticker makes them
	workers   sync.WaitGroup

	// What follows belongs to the loop, and after done to everybody.
	teller      *teller
	controllers *controllers
	processes   *processes
	wants       *wants
	points      *points
	pace        *pace
	decider     *decider
	inheritance *inheritance
	losses      *losses
	sleepers    *sleepers
	tunlets     *tunlets
	population  *population
	renewed     time.Time
	ticker      *time.Ticker  // nil in tests, which tick by hand
	ticked      time.Duration // when the last tick was
	closing     bool
	objected    bool // to a value of the owner's objective
}

// Run works until Close or the end of ctx, then waits for the tunlets' workers.
// It is called once.
func (s *Session) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer s.workers.Wait()
	defer cancel()
	defer close(s.done)
	ticks := s.ticks
	if ticks == nil {
		s.ticker = time.NewTicker(s.tickEvery)
		defer s.ticker.Stop()
		ticks = s.ticker.C
	}
	for !s.closing {
		select {
		case <-ctx.Done():
			s.closing = true
		case f := <-s.messages:
			f()
		case <-ticks:
			s.tick()
		}
		s.wants.tell(s.pace.period)
		s.releaseMet()
	}
	s.emitChanged()
	s.tunlets.stop()
}

// View has the loop compute something of what the sinks have taken, which know all
// until the given time since the session's start, and waits for it. Once the session
// has ended it computes it itself: nobody changes anything then.
func View[T any](ctx context.Context, s *Session, f func(at time.Duration) T) (T, error) {
	var v T
	err := s.do(ctx, func() { s.emitChanged(); v = f(s.now()) })
	switch {
	case errors.Is(err, ErrEnded):
		return f(s.now()), nil
	case err != nil: // f may be at work
		var zero T
		return zero, err
	}
	return v, nil
}

// Tell gives the sinks a frame of what the session does not know itself, unless it has
// ended. It waits while the session does not keep up, and must not be called in its loop.
func (s *Session) Tell(frame *attunev1.RecordingFrame) {
	_ = s.TellWithin(context.Background(), frame)
}

// TellWithin is Tell with an end of the waiting for room; an error: it was not told.
func (s *Session) TellWithin(ctx context.Context, frame *attunev1.RecordingFrame) error {
	return s.postWithin(ctx, func() { s.teller.emit(frame) })
}

// Measured takes a value of the owner's objective (core.Config) over an interval that ends
// at the given time: by the session's clock, as frames have it, or as read from this
// machine's with its monotonic part. It does not wait: where the session does not keep
// up, the value is lost, and counted. Nothing is judged by one that
// [attunev1.CheckObjective] objects to: a remark says so, once.
func (s *Session) Measured(value float64, end time.Time) {
	s.postData(1, 0, func() {
		err := attunev1.CheckObjective(value)
		switch {
		case err == nil:
			s.decider.step(core.Measured{Value: value, At: s.sinceStart(end)})
		case !s.objected:
			s.objected = true
			s.teller.emitRemark(ownName, 0, "your objective: "+err.Error())
		}
	})
}

// TunletReady tells of a tunlet that answers calls.
func (s *Session) TunletReady(tn Tunlet) {
	s.post(func() { s.tunlets.add(tn) })
}

// TunletGone tells that a tunlet's process has ended, or that one which was
// asleep cannot be started.
func (s *Session) TunletGone(name, reason string) {
	s.post(func() { s.tunlets.remove(name, reason) })
}

// TunletAsleep tells of a tunlet that need not run before one of the conditions
// in its description holds. wake then starts it: TunletReady follows, or
// TunletGone. It must not wait.
func (s *Session) TunletAsleep(info *attunev1.DescribeResponse, wake func()) {
	s.post(func() { s.sleepers.add(info, wake) })
}

// tickWithSamples makes time pass when samples come: who is awake then need not be
// woken for a tick besides, which the ticker gives only where no samples come.
func (s *Session) tickWithSamples() {
	if s.ticker != nil && s.now()-s.ticked >= s.pace.period/2 {
		s.tick()
	}
}

// tick makes time pass for everybody.
func (s *Session) tick() {
	s.ticked = s.now()
	if s.ticker != nil {
		defer func() { s.ticker.Reset(cmp.Or(s.pace.period*3/2, s.tickEvery)) }()
	}
	s.decider.step(core.Tick{})
	s.population.introduceGrown()
	s.loseLate()
	s.pace.relax()
	s.emitChanged()
	s.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Tick{Tick: &attunev1.RecordedTick{}}})
	s.tunlets.tick()
	if now := s.wall(); now.Sub(s.renewed) >= renewEvery {
		s.renewed = now
		s.renewLeases()
	}
}

// audience is whom samples are of use to at present.
func (s *Session) audience() audience {
	a := audience{
		decides: s.decider.busy(),
		watched: len(s.tunlets.running)+len(s.askers.list) > 0,
		expects: s.sleepers.watch.Expects(2 * glance * s.pace.tick),
		period:  s.periodAsked(),
	}
	a.any = len(s.tunlets.running) > 0 || !s.sleepers.watch.Empty() || s.anythingAsked()
	return a
}

// emitChanged tells what is not told when it changes, because it changes often: how
// proposals stand, and what was lost. What is kept is kept on its node before anybody
// sees it.
func (s *Session) emitChanged() {
	s.tellProven()
	s.decider.emitProposals()
	s.losses.emit(s.tunlets.lost)
}

// Keep has a later Settle leave changes in force that were kept, and returns
// their ids: the session's own, and those that it took over and whose processes it
// awaits.
func (s *Session) Keep(ctx context.Context) ([]string, error) {
	return View(ctx, s, func(time.Duration) []string {
		s.decider.keep = true
		return s.inheritance.kept()
	})
}

// Settle undoes what was changed in processes that still run; nothing is
// decided from then on. Controllers go on delivering. It returns when all is
// undone, or with ctx's error when that takes too long.
func (s *Session) Settle(ctx context.Context) error {
	return s.until(ctx, "settle the session", func() {
		s.sleepers.over = true
		s.decider.finish()
	}, func() bool { return !s.decider.core.Busy() })
}

// Finish tells the tunlets that the application has ended; what controllers
// deliver later does not come before that. It includes Settle. It returns when
// the tunlets have answered, with a remark about those that have not in time, or with
// ctx's error. The session itself goes on until Close.
func (s *Session) Finish(ctx context.Context) error {
	if err := s.Settle(ctx); err != nil {
		return err
	}
	told, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	err := s.until(told, "finish the session", func() {
		s.ending = true
		s.tunlets.end()
	}, func() bool { return len(s.tunlets.untold()) == 0 })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		_, err = View(ctx, s, func(time.Duration) bool { return s.tunlets.leaveUntold() })
	}
	return err
}

// Close ends the loop. It does not wait; Run returns soon afterwards.
func (s *Session) Close() {
	s.post(func() { s.closing = true })
}
