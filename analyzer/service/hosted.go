// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/analyzer/fold"
	"github.com/attune-hpc/attune/analyzer/session"
	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// lookEvery is how often a session is looked at when nothing happens, and
	// lookAgain how soon when something does.
	lookEvery = time.Second
	lookAgain = 100 * time.Millisecond
	// endPatience is how long changes may take to be undone, and dismissPatience
	// controllers to leave.
	endPatience     = 10 * time.Second
	dismissPatience = 5 * time.Second
	// lookPatience is how long a busy session may take to say how it stands.
	lookPatience = 2 * time.Second
)

// errOver is what controllers are told of a session that has ended.
var errOver = status.Error(codes.Aborted, "the session has ended")

// hosted is one session of the service. Its goroutine, see run, does everything
// that takes time.
type hosted struct {
	*session.Session // takes what the channels carry

	service  *Service
	log      *slog.Logger
	key      key
	analyzer *analyzer.Analyzer
	ctx      context.Context // for the tunlets
	changed  queue.Bell
	ends     chan ending
	done     chan struct{} // closed when nothing of it is left

	// What follows up to mu is run's own.
	tunlets   bool // they are started
	idleFrom  time.Time
	published *attunev1.SessionRecord

	mu     sync.Mutex // guards what follows; a leaf lock
	record *attunev1.SessionRecord
	over   error // what controllers are told
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

// begin begins the session of an execution, or goes on with one that another
// Analyzer began. The caller holds mu and enters it.
func (s *Service) begin(o *owned, r *attunev1.Registration, job *attunev1.Job, user *attunev1.Principal) (*hosted, error) {
	record := o.next(r, job, user)
	record.Analyzer = s.cfg.Record.GetId()
	h := &hosted{
		service: s, key: newKey(r.GetId(), job, user), record: record, log: s.log.With("session", record.GetId()),
		changed: queue.NewBell(), ends: make(chan ending, 1), done: make(chan struct{}), over: errOver,
	}
	a, err := analyzer.New(analyzer.Config{
		Knowledge: s.knowledge(user), Mode: r.GetMode(), JobID: record.GetId(), Command: record.GetCommandLine(), Version: s.cfg.Version,
		TunletDirs: s.cfg.TunletDirs, Tunlets: r.GetTunlets(), TunletOptions: s.options(r), Digests: s.cfg.Digests,
		DescriptionDir: s.cfg.DescriptionDir, TunletLimits: s.cfg.TunletLimits, TunletPool: s.tunlets,
		Lease: s.cfg.Lease, Grace: s.cfg.Grace, Inherit: record.GetKeptChanges(), ChangePrefix: randomTag() + "-",
		Changed: func() { h.changed.Ring() }, Audit: s.audit(record.GetId()), Log: h.log,
	})
	if err != nil {
		return nil, status.Errorf(codes.Internal, "begin a session: %v", err)
	}
	h.analyzer, h.Session = a, a.Session()
	h.ctx = a.Begin(s.ctx) // not a channel's: its connection would stay in memory with the session
	h.log.Info("session begins", "job", job.Key(), "mode", r.GetMode(), "taken_over", record.GetProcesses() > 0)
	s.sessions.Go(h.run)
	return h, nil
}

// next returns the record with which an execution's session begins: that of one
// that is to be taken over, or a new one.
func (o *owned) next(r *attunev1.Registration, job *attunev1.Job, user *attunev1.Principal) *attunev1.SessionRecord {
	for number := 1; ; number++ {
		id := sessionID(r, job, user, number)
		if _, ended := o.ended[id]; ended {
			continue
		}
		if old := o.past[id]; old != nil {
			return proto.CloneOf(old)
		}
		return &attunev1.SessionRecord{
			Id: id, Registration: r.GetId(), Job: job, User: user, State: attunev1.SessionState_SESSION_STATE_RUNNING,
			StartedUnixNano: time.Now().UnixNano(),
		}
	}
}

// options are the tunlets' settings: the registration's before the site's.
func (s *Service) options(r *attunev1.Registration) map[string]map[string]string {
	out := make(map[string]map[string]string)
	for name, values := range s.cfg.TunletOptions {
		out[name] = maps.Clone(values)
	}
	for name, o := range r.GetTunletOptions() {
		if out[name] == nil {
			out[name] = make(map[string]string)
		}
		maps.Copy(out[name], o.GetValues())
	}
	return out
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
	if h.record.User == nil {
		h.record.User = user
	}
	if owner := h.record.User; user != nil && owner.GetUid() != user.GetUid() {
		return status.Errorf(codes.PermissionDenied, "the session is of %s, not of %s", owner.GetName(), user.GetName())
	}
	return mayJoin(who, h.record.User)
}

// stop asks for the end; the first to ask says how.
func (h *hosted) stop(e ending) {
	select {
	case h.ends <- e:
	default:
	}
}

// abandon leaves the session to another Analyzer.
func (h *hosted) abandon(over error) { h.stop(ending{leave: true, over: over}) }

// run looks after the session until it ends.
func (h *hosted) run() {
	defer close(h.done)
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		select {
		case e := <-h.ends:
			h.finish(e)
			return
		case <-h.changed:
		case <-every.C:
		}
		if h.look(h.service.now()) {
			h.finish(ending{})
			return
		}
		if e, asked := h.rest(); asked {
			h.finish(e)
			return
		}
	}
}

// rest lets things happen, to be seen together, unless the session is to end.
func (h *hosted) rest() (e ending, asked bool) {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	select {
	case e := <-h.ends:
		return e, true
	case <-timer.C:
		return ending{}, false
	}
}

// look does what the session's state asks for. It reports whether it is over.
func (h *hosted) look(now time.Time) bool {
	ctx, cancel := context.WithTimeout(context.Background(), lookPatience)
	defer cancel()
	sum, err := h.analyzer.Summary(ctx)
	if err != nil {
		return false // it is busy
	}
	h.publish(sum)
	h.startTunlets(now, sum)
	if sum.Running > 0 || sum.Controllers > 0 {
		h.idleFrom = time.Time{}
		return false
	}
	if h.idleFrom.IsZero() {
		h.idleFrom = now
	}
	return now.Sub(h.idleFrom) >= h.service.cfg.Linger
}

// startTunlets starts the tunlets of a session that is worth them.
func (h *hosted) startTunlets(now time.Time, sum fold.Summary) {
	if h.tunlets || sum.Running == 0 {
		return
	}
	young := now.Sub(h.Start()) < h.service.cfg.TunletDelay
	if young && len(sum.Kept) == 0 { // what was kept must not stay without its tunlet
		return
	}
	h.tunlets = true
	if err := h.analyzer.StartTunlets(h.ctx); err != nil {
		h.log.Warn("not every tunlet can be used", "error", err)
	}
}

// publish has the session's record put into the registry, if it has changed.
func (h *hosted) publish(sum fold.Summary) {
	h.mu.Lock()
	update(h.record, sum)
	now := proto.CloneOf(h.record)
	h.mu.Unlock()
	if !proto.Equal(h.published, now) {
		h.published = now
		h.service.recorder.put(now)
	}
}

// snapshot returns the session's record.
func (h *hosted) snapshot() *attunev1.SessionRecord {
	h.mu.Lock()
	defer h.mu.Unlock()
	return proto.CloneOf(h.record)
}
