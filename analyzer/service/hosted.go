// SPDX-License-Identifier: Apache-2.0

package service

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/session"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/queue"
	"github.com/attune-hpc/attune/proto/attune/series"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What controllers are told: of a session that has ended, that somebody has stopped, that
// another Analyzer has, and that this one leaves.
var (
	errOver    = status.Error(codes.Aborted, "the session has ended")
	errStopped = status.Error(codes.Aborted, "the session was stopped")
	errMoved   = status.Error(codes.FailedPrecondition, "another Analyzer has the registration")
	errGoing   = status.Error(codes.Unavailable, "the Analyzer is ending")
)

// errUnregistered tells a controller that nothing is registered under its id, or that it
// was withdrawn.
func errUnregistered(id string) error {
	return status.Errorf(codes.NotFound, "there is no registration %q", id)
}

// errClosing refuses a controller of a session that ends while its execution may go on: the
// controller begins the next one.
var errClosing = errors.New("the session ends")

// hosted is one session of the service. Its goroutine, see run, does everything
// that takes time; stop, admit and what returns something are for all goroutines.
type hosted struct {
	*session.Session // takes what the channels carry

	log      *slog.Logger
	key      key
	recorder *recorder
	reports  *reports
	analyzer *analyzer.Analyzer
	ctx      context.Context  // for the tunlets
	now      func() time.Time // by which it is idle
	linger   time.Duration    // how long it waits without processes
	delay    time.Duration    // how old it is when it gets its tunlets
	changed  queue.Bell
	ends     chan ending
	done     chan struct{} // closed when nothing of it is left
	epoch    func() uint64 // of the lease of its registration
	// registration is the latest that asks for it; guarded by table.mu.
	registration *attunev1.Registration

	// What follows up to mu is run's own.
	tunlets   bool // they are started
	idleFrom  time.Time
	published published
	figures   figures

	mu     sync.Mutex // guards what follows; a leaf lock
	record *attunev1.SessionRecord
	over   error                     // what controllers are told
	joined time.Time                 // when a controller was let in last
	closes bool                      // it ends, and lets none in
	held   [series.SignalSize]uint64 // by the processes that run; see [fold.Figures]
}

// publishEvery is how often a record is put that has not changed: the registry forgets
// those that are old by its clock, which may jump, and the next Analyzer needs it.
const publishEvery = time.Hour

// published is what the registry was told last of a session.
type published struct {
	record *attunev1.SessionRecord
	at     time.Time
	epoch  uint64 // the lease had another one later: the registry may have lost everything
}

// ending says how a session is to end.
type ending struct {
	// reason for people; empty: there is nothing to say.
	reason string
	// keep leaves what was kept.
	keep bool
	// over is what controllers are told; nil: that it has ended.
	over error
	// leave has another Analyzer go on with it: nothing is undone.
	leave bool
}

// Ended implements channel.Session.
func (h *hosted) Ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

// admit lets somebody's controller with processes of a user in. The user of the
// first one is the session's.
func (h *hosted) admit(who, user *attunev1.Principal) error {
	if user == nil && who.GetRole() == attunev1.Role_ROLE_USER {
		user = who
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.record.GetStopped():
		return errStopped
	case h.closes:
		return errClosing
	}
	h.joined = h.now()
	if h.record.User == nil {
		h.record.User = user
	}
	if owner := h.record.User; user != nil && owner.GetUid() != user.GetUid() {
		return status.Errorf(codes.PermissionDenied, "the session is of %s, not of %s", owner.GetName(), user.GetName())
	}
	return mayJoin(who, h.record.User)
}

// endsIdle reports whether the session ends because there was nothing in it since a time
// so long ago, nor is anything about to come.
func (h *hosted) endsIdle(since, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closes = h.closes || now.Sub(since) >= h.linger && now.Sub(h.joined) >= h.linger
	return h.closes
}

// closeDoor has controllers that come from now on begin the next session.
func (h *hosted) closeDoor() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closes = true
}

// stop asks for the end; the first to ask says how.
func (h *hosted) stop(e ending) {
	select {
	case h.ends <- e:
	default:
	}
}

// leaveAlone has the controllers of the execution turned away from now on, by whichever
// Analyzer. It returns false if the session has ended.
func (h *hosted) leaveAlone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.record.GetEndedUnixNano() != 0 {
		return false
	}
	h.record.Stopped = true
	return true
}

// abandon leaves the session to another Analyzer.
func (h *hosted) abandon(over error) { h.stop(ending{leave: true, over: over}) }

// count takes what is counted of the session.
func (h *hosted) count(now fold.Figures) {
	h.figures.take(now)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = now.Held
}

// holds is what the processes that run have of the signals that are gauges.
func (h *hosted) holds() [series.SignalSize]uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// publish has the session's record put into the registry, if it has changed or may not be
// there any more.
func (h *hosted) publish(sum fold.Summary) {
	now := published{at: h.now(), epoch: h.epoch()}
	h.mu.Lock()
	update(h.record, sum)
	now.record = proto.CloneOf(h.record)
	h.mu.Unlock()
	if !proto.Equal(h.published.record, now.record) || h.published.epoch != now.epoch || now.at.Sub(h.published.at) >= publishEvery {
		h.published = now
		h.recorder.put(now.record)
	}
}

// snapshot returns the session's record.
func (h *hosted) snapshot() *attunev1.SessionRecord {
	h.mu.Lock()
	defer h.mu.Unlock()
	return proto.CloneOf(h.record)
}

// lastRecord returns the record as it is when the session has ended.
func (h *hosted) lastRecord(sum fold.Summary, known bool) *attunev1.SessionRecord {
	record := h.snapshot()
	if known {
		update(record, sum)
	}
	record.State, record.EndedUnixNano = attunev1.SessionState_SESSION_STATE_ENDED, time.Now().UnixNano()
	record.Running = 0
	return record
}

// end ends the session's record, in which it notes whether somebody has stopped the session.
func (h *hosted) end(record *attunev1.SessionRecord) {
	h.mu.Lock()
	defer h.mu.Unlock()
	record.Stopped = h.record.GetStopped()
	h.record = proto.CloneOf(record)
}

// show tells all of a session that runs.
func (h *hosted) show() (*attunev1.ShowSessionResponse, error) {
	var text bytes.Buffer
	if err := h.analyzer.Report().EncodeJSON(&text); err != nil {
		return nil, status.Errorf(codes.Internal, "write the report: %v", err)
	}
	return &attunev1.ShowSessionResponse{Session: h.snapshot(), Report: text.Bytes()}, nil
}

// update brings a record up to date.
func update(r *attunev1.SessionRecord, sum fold.Summary) {
	if sum.Processes == 0 {
		return // a session that was taken over has not heard of them yet
	}
	if r.User == nil {
		r.User = authn.OfUser(sum.UID)
	}
	r.CommandLine, r.Hosts = sum.Command, sum.Hosts
	r.Processes, r.Running = uint32(sum.Processes), uint32(sum.Running)
	r.Gain, r.KeptChanges = sum.Gain, sum.Kept
	r.Kept = max(r.Kept, uint32(len(sum.Kept))) // those of processes that have ended are in force no more
}
