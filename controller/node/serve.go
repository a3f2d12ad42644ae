// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/attune-hpc/attune/controller/child"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	"github.com/attune-hpc/attune/internal/turns"
)

const (
	// lookInterval is how often a session looks whether it is needed.
	lookInterval = time.Second
	// idleLooks is at how many of them nothing has to be there before it ends:
	// the processes of a job often come and go.
	idleLooks = 3
	// withdrawnLooks is how many it waits for the Analyzer's word when its
	// registration was withdrawn.
	withdrawnLooks = 15
	// retryInterval follows a controller that could not be made.
	retryInterval = 5 * time.Second
)

// server serves one session, in a goroutine of its own: it makes its controller, hands
// processes to it, and ends it.
type server struct {
	*session

	sessions      *sessions
	registrations *registrations
	maker         *maker
	notes         *notes
	turns         *turns.Board
	restore       func(context.Context) // takes back what dead controllers left
	touch         func()                // has the node's record announced anew
}

// run serves the session until nothing is left of it here.
func (s *server) run(ctx context.Context) {
	defer s.touch()
	err := makeGateFolder(s.maker.folder(s.session), s.key.uid)
	if err != nil {
		s.log.Warn("folder of the start gate", "error", err) // where it cannot be used the gate will say so, too
	}
	defer func() {
		if err := os.RemoveAll(s.maker.folder(s.session)); err != nil {
			s.log.Debug("folder of the start gate", "error", err)
		}
	}()
	if !s.open(ctx) {
		s.sessions.forget(s.session) // with what waits for it
		return
	}
	s.touch()
	end := s.serve(ctx)
	if end.lost {
		s.giveUp(ctx, end.reason)
		return
	}
	s.log.Info("session ends here", "reason", end.reason)
	s.close(ctx, end)
}

// giveUp ends a session whose controller is lost, for good: what has made it end would
// again. What it had changed is undone from its journal.
func (s *server) giveUp(ctx context.Context, reason error) {
	s.sessions.giveUp(s.session)
	s.restore(context.WithoutCancel(ctx))
	s.notes.troubleOf(s.key.uid, fmt.Sprintf("the session of registration %s, job %s, user %d is given up: %v",
		s.key.registration, s.key.job, s.key.uid, reason))
	s.log.Error("session is given up: its processes run on untouched, and are not taken again", "reason", reason)
}

// open makes the controller, for as long as it takes; false if nobody needs it
// any more, or the node ends.
func (s *server) open(ctx context.Context) bool {
	for {
		c, err := s.maker.makeController(s.session)
		if err == nil {
			err = c.Start(ctx)
		}
		if err == nil {
			s.controller = c
			close(s.ready)
			s.log.Info("session begins here", "mode", s.order.registration.GetMode(), "allowed", s.order.grant.mode)
			return true
		}
		if ctx.Err() != nil {
			return false // the node ends
		}
		if errors.Is(err, child.ErrLost) {
			s.giveUp(ctx, err)
			return false
		}
		s.notes.troubleOf(s.key.uid, "session cannot begin: "+err.Error())
		s.log.Error("processes are not controlled", "error", err)
		if !beat.Pause(ctx, retryInterval) || s.sessions.retire(s.session, true) {
			return false
		}
	}
}

// serve hands processes to the controller until the session ends.
func (s *server) serve(ctx context.Context) conclusion {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	idle, withdrawn, known := 0, 0, false
	loop := s.turns.Begin("session "+s.key.registration+" of user "+strconv.FormatUint(uint64(s.key.uid), 10), standsAfter, false)
	defer loop.End()
	for {
		loop.Turn()
		select {
		case <-ctx.Done():
			return conclusion{reason: errClosed}
		case end := <-s.ended:
			s.sessions.conclude(s.session)
			return end
		case <-s.controller.Ended():
			return conclusion{reason: s.controller.Err(), lost: true}
		case why := <-s.switched:
			return conclusion{reason: errors.New(why)}
		case <-s.woken:
			s.follow(ctx, slog.LevelWarn)
			idle = 0
		case <-look.C:
			idle, withdrawn = idle+1, withdrawn+1
			if s.follow(ctx, slog.LevelDebug) || s.controller.Living() > 0 {
				idle = 0
			}
			if s.registrations.registered(s.key.registration) {
				withdrawn, known = 0, true
			}
			if idle >= idleLooks && s.sessions.retire(s.session, false) {
				return conclusion{reason: errors.New("its processes have ended")}
			}
			if known && withdrawn >= withdrawnLooks {
				return conclusion{reason: errors.New("its registration was withdrawn")}
			}
		}
	}
}

// follow hands the processes that wait to the controller, and says whether any waits no
// more. They wait until it has them, so that nobody takes one twice. When it cannot read
// what is the user's, which is logged, all that live wait on: the one that was tried behind
// the others, since it may be the cause.
func (s *server) follow(ctx context.Context, refused slog.Level) (less bool) {
	later := false
	for _, process := range s.sessions.waiting(s.session) {
		switch alive := process.Alive(); {
		case alive && later:
			continue
		case alive:
			err := s.controller.FollowProcess(process)
			if errors.Is(err, readers.ErrRefused) {
				s.log.Log(ctx, refused, "processes are not followed yet", "pid", process.PID(), "error", err)
				s.sessions.postpone(s.session, process)
				later = true
				continue
			}
			if err != nil && !errors.Is(err, procid.ErrGone) {
				s.log.Warn("process is not followed", "pid", process.PID(), "error", err)
			}
		}
		s.sessions.followed(s.session, process)
		less = true
	}
	if less {
		s.touch()
	}
	return less
}

// stopTimeout bounds how long a session may take to give everything back.
const stopTimeout = 10 * time.Second

// close gives everything back.
func (s *server) close(ctx context.Context, end conclusion) {
	s.sessions.forget(s.session)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	s.keep(ctx, end.keep)
	if err := s.stop(ctx, end); err != nil {
		s.notes.troubleOf(s.key.uid, "session could not give everything back: "+err.Error())
		s.log.Warn("not everything was given back; what its journal has is tried again", "error", err)
		s.restore(context.WithoutCancel(ctx))
	}
}

// stop stops the controller, which gives everything back but what is held for the node
// that comes next.
func (s *server) stop(ctx context.Context, end conclusion) error {
	until := time.Duration(s.sessions.heldUntil.Load())
	if until == 0 || !errors.Is(end.reason, errClosed) {
		return s.controller.Stop(ctx)
	}
	held, err := s.controller.Hold(ctx, until)
	if err == nil {
		s.log.Info("changes are held for the next attuned", "changes", held)
	}
	return err
}

// keep leaves changes in force that are to outlive their session.
func (s *server) keep(ctx context.Context, ids []string) {
	if len(ids) == 0 {
		return
	}
	kept, err := s.controller.KeepOnly(ctx, ids)
	if err != nil {
		s.notes.troubleOf(s.key.uid, "changes could not be kept: "+err.Error())
		s.log.Warn("changes are given back that were to be kept", "error", err)
	}
	if len(kept) > 0 {
		s.log.Info("changes stay in force: attune undo takes them back", "ids", kept)
	}
}
