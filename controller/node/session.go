// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/internal/logging"
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
	grant        grant // when it was found
}

func (o order) key() sessionKey {
	return sessionKey{o.registration.GetId(), o.job.Key(), o.uid}
}

// controlled is the controller of a session; see [child.Controller], which is one, for
// what its methods do.
type controlled interface {
	Start(ctx context.Context) error
	FollowProcess(process *procid.Process) error
	Has(process procid.Identity) bool
	Living() int
	Processes() []*attunev1.Process
	Changes() []actuate.InForce
	Environment(pid int) []string
	KeepOnly(ctx context.Context, changes []string) ([]string, error)
	Stop(ctx context.Context) error
	Hold(ctx context.Context, until time.Duration) (held int, err error)
	Ended() <-chan struct{}
	Err() error
}

// session is one session's part on this node, as the list of sessions has it.
type session struct {
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

	waiting []*procid.Process // to be followed; guarded by sessions.mu
}

// conclusion is how a session ends.
type conclusion struct {
	keep   []string
	reason error
	lost   bool // the controller is gone, with what it should have given back
}

func newSession(number int, o order, log *slog.Logger) *session {
	return &session{
		order: o, key: o.key(), number: number,
		woken: queue.NewBell(), ready: make(chan struct{}), ended: make(chan conclusion, 1),
		switched: make(chan string, 1),
		log:      log.With("registration", o.registration.GetId(), "job", o.job.Key(), logging.UserKey, o.uid),
	}
}

// over takes the Analyzer's word that the session has ended.
func (s *session) over(keep []string, reason error) {
	s.ended <- conclusion{keep: keep, reason: reason}
}

// has says whether a process is the session's. The caller holds sessions.mu.
func (s *session) has(process *procid.Process) bool {
	for _, other := range s.waiting {
		if other.Identity().SameProcess(process.Identity()) {
			return true
		}
	}
	return s.running() && s.controller.Has(process.Identity())
}

// running says whether the session has a controller.
func (s *session) running() bool {
	select {
	case <-s.ready:
		return true
	default:
		return false
	}
}

// share is the session's part here.
func (s *session) share() *attunev1.SessionShare {
	return &attunev1.SessionShare{Registration: s.key.registration, Job: s.order.job, Processes: uint32(s.living()), Uid: s.key.uid}
}

// living counts the session's processes.
func (s *session) living() int {
	if !s.running() {
		return 0
	}
	return s.controller.Living()
}

// changes are what the session has changed in its processes.
func (s *session) changes() []actuate.InForce {
	if !s.running() {
		return nil
	}
	return s.controller.Changes()
}

// processes are the session's, none before it has a controller.
func (s *session) processes() []*attunev1.Process {
	if !s.running() {
		return nil
	}
	return s.controller.Processes()
}
