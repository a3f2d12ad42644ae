// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/attune-hpc/attune/controller"
	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/discover"
	"github.com/attune-hpc/attune/controller/track"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// sessionKey names a session's part on this node. Users are told apart here:
// anybody can give their processes the job id of somebody else.
type sessionKey struct {
	registration string
	job          string
	uid          uint32
}

// order is what a session is made from.
type order struct {
	registration *attunev1.Registration
	job          *attunev1.Job
	uid          uint32
	executable   string // of the first process
	grant        grant  // when it was found
}

func (o order) key() sessionKey {
	return sessionKey{o.registration.GetId(), o.job.Key(), o.uid}
}

const (
	// lookInterval is how often a session looks whether it is needed.
	lookInterval = time.Second
	// idleLooks is at how many of them nothing has to be there before it ends:
	// the processes of a job often come and go.
	idleLooks = 3
	// withdrawnLooks is how many it waits for the Analyzer's word when its
	// registration was withdrawn.
	withdrawnLooks = 15
	// rareLook bounds how long a process is unknown whose start was lost.
	rareLook = 30 * time.Second
	// retryInterval follows a controller that could not be made.
	retryInterval = 5 * time.Second
)

// controlled is the controller of a session; see *controller.Controller, which is
// one, for what its methods do.
type controlled interface {
	Start(ctx context.Context) error
	FollowProcess(process *procid.Process) error
	Has(process procid.Identity) bool
	Living() int
	Processes() []*attunev1.Process
	Environment() []string
	KeepOnly(ctx context.Context, kept *actuate.Kept, changes []string) ([]string, error)
	Stop(ctx context.Context) error
}

// session is one session's part on this node.
type session struct {
	node   *Node
	order  order
	key    sessionKey
	number int
	log    *slog.Logger
	woken  queue.Bell      // rung when a process waits
	ready  chan struct{}   // closed when controller is set
	ended  chan conclusion // what the Analyzer says at the end
	// switched takes, once, why Attune was switched off.
	switched chan string
	// controller is set before ready is closed.
	controller controlled

	waiting []*procid.Process // to be followed; guarded by Node.mu
}

// conclusion is how a session ends.
type conclusion struct {
	keep   []string
	reason error
}

// run serves the session until nothing is left of it here.
func (s *session) run(ctx context.Context) {
	defer s.node.touch()
	if err := os.Mkdir(s.folder(), 0o711); err != nil && !errors.Is(err, os.ErrExist) {
		s.log.Warn("folder of the start gate", "error", err) // the gate will say so, too
	}
	defer func() {
		if err := os.RemoveAll(s.folder()); err != nil {
			s.log.Debug("folder of the start gate", "error", err)
		}
	}()
	if !s.open(ctx) {
		return
	}
	s.node.touch()
	end := s.serve(ctx)
	s.log.Info("session ends here", "reason", end.reason)
	s.close(ctx, end)
}

// open makes the controller, for as long as it takes; false if nobody needs it
// any more.
func (s *session) open(ctx context.Context) bool {
	for {
		c, err := s.node.control(s.config())
		if err == nil {
			err = c.Start(ctx)
		}
		if err == nil {
			s.controller = c
			close(s.ready)
			s.log.Info("session begins here", "mode", s.order.registration.GetMode(), "allowed", s.order.grant.mode)
			return true
		}
		s.log.Error("processes are not controlled", "error", err)
		s.node.notes.trouble("session cannot begin: " + err.Error())
		select {
		case <-ctx.Done():
		case <-time.After(retryInterval):
		}
		if ctx.Err() != nil || s.retire(true) {
			return false
		}
	}
}

// folder of the start gate, where users may pass but not look.
func (s *session) folder() string { return filepath.Join(s.node.gates(), strconv.Itoa(s.number)) }

// config is that of the session's controller.
func (s *session) config() controller.Config {
	n := s.node
	return controller.Config{
		Analyzer: &finder{
			owners: n.owners, registration: s.key.registration, host: n.config.Host, credentials: n.config.Credentials,
		},
		ID: fmt.Sprintf("%s.%d", n.config.ID, s.number),
		Session: controller.Session{
			Registration: s.key.registration, Job: s.order.job, Owner: s.order.registration.GetOwner(),
			User: authn.OfUser(s.key.uid), Mode: s.order.grant.mode,
		},
		GatePath: filepath.Join(s.folder(), "gate"), LibraryPath: n.config.LibraryPath, LateLibrary: true,
		Untouched: s.untouched, Over: s.over,
		Asked: s.asked, Answered: s.answered,
		StateDir: n.journals(), Source: n.watcher.Source(), LookInterval: n.lookInterval(), Mechanisms: n.config.Mechanisms, UseBPF: n.config.UseBPF,
		Hidden: n.config.Hidden, Policy: n.config.Policy, Budget: n.config.Budget,
		Digests: n.config.Digests, Version: n.config.Version, Log: n.config.Log.With("session", s.number),
	}
}

// lookInterval is how often a session looks for processes beside the node's
// events: rarely, for each looks at all of the node; often where the node itself
// has nothing better.
func (n *Node) lookInterval() time.Duration {
	if n.watcher.Status().Mode == discover.ModePoll {
		return track.DefaultPollInterval
	}
	return rareLook
}

// untouched asks the policy of the day whether anything may be changed.
func (s *session) untouched() string {
	return s.node.granted(s.order.registration, s.order.uid, s.order.executable).untouched()
}

// over takes the Analyzer's word that the session has ended.
func (s *session) over(keep []string, reason error) {
	s.ended <- conclusion{keep: keep, reason: reason}
}

// serve hands processes to the controller until the session ends.
func (s *session) serve(ctx context.Context) conclusion {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	idle, withdrawn, known := 0, 0, false
	for {
		select {
		case <-ctx.Done():
			return conclusion{reason: errClosed}
		case end := <-s.ended:
			s.node.conclude(s.key)
			return end
		case why := <-s.switched:
			return conclusion{reason: errors.New(why)}
		case <-s.woken:
			s.follow()
			idle = 0
		case <-look.C:
			idle, withdrawn = idle+1, withdrawn+1
			if s.controller.Living() > 0 {
				idle = 0
			}
			if s.node.registered(s.key.registration) {
				withdrawn, known = 0, true
			}
			if idle >= idleLooks && s.retire(false) {
				return conclusion{reason: errors.New("its processes have ended")}
			}
			if known && withdrawn >= withdrawnLooks {
				return conclusion{reason: errors.New("its registration was withdrawn")}
			}
		}
	}
}

// follow hands the processes that wait to the controller. They wait until it
// has them, so that nobody takes one twice.
func (s *session) follow() {
	n := s.node
	n.mu.Lock()
	waiting := slices.Clone(s.waiting)
	n.mu.Unlock()
	for _, process := range waiting {
		if err := s.controller.FollowProcess(process); err != nil && !errors.Is(err, procid.ErrGone) {
			s.log.Warn("process is not followed", "pid", process.PID(), "error", err)
		}
	}
	n.mu.Lock()
	s.waiting = s.waiting[len(waiting):] // more may have come
	n.mu.Unlock()
	for _, process := range waiting {
		_ = process.Close() // it is open until here
	}
	n.touch()
}

// stopTimeout bounds how long a session may take to give everything back.
const stopTimeout = 10 * time.Second

// close gives everything back.
func (s *session) close(ctx context.Context, end conclusion) {
	s.node.mu.Lock()
	s.forget()
	s.node.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	s.keep(ctx, end.keep)
	if err := s.controller.Stop(ctx); err != nil {
		s.log.Warn("not everything was given back in time; the journal has the rest", "error", err)
		s.node.notes.trouble("session could not give everything back: " + err.Error())
	}
}
