// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/analyzer"
	"github.com/attune-hpc/attune/analyzer/channel"
	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/logging"
	"github.com/attune-hpc/attune/internal/metrics"
	"github.com/attune-hpc/attune/internal/objective"
	"github.com/attune-hpc/attune/internal/queue"
	"github.com/attune-hpc/attune/internal/quota"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// routePatience is how long a controller waits whose registration is not known
// or not claimed here yet: it may have been quicker than the registry.
const routePatience = 2 * time.Second

// userShare is which part of all sessions one user gets for certain: one in so many.
const userShare = 8

// beginEvery is how often one user's sessions may begin, beyond half of all at once: it is
// remembered for days that they were.
const beginEvery = 3 * time.Second

// tellEvery is how often the log tells at most that sessions are refused.
const tellEvery = time.Minute

// router finds the session that a controller serves, or begins it. route is safe for
// use by several goroutines.
type router struct {
	cfg      Config
	log      *slog.Logger
	table    *table
	reports  *reports
	recorder *recorder
	tunlets  *tunlethost.Pool // of all sessions
	now      func() time.Time // by which sessions are idle
	begun    *quota.Rate[uint32]
	running  sync.WaitGroup // sessions

	// refused counts the sessions that were not begun, of which the log told last at told;
	// guarded by table.mu.
	refused uint64
	told    time.Time
}

// route finds the session that a controller serves, or begins it.
func (rt *router) route(ctx context.Context, hello channel.Hello) (channel.Session, error) {
	who, err := authn.PrincipalFrom(ctx)
	if err != nil {
		return nil, err
	}
	id := hello.GetRegistration()
	r := rt.table.awaitRegistration(ctx, id, routePatience)
	if r == nil {
		return nil, errUnregistered(id)
	}
	user := hello.GetUser()
	if user == nil && who.GetRole() == attunev1.Role_ROLE_USER {
		user = who
	}
	if err := mayServe(who, r, user); err != nil {
		return nil, err
	}
	if err := rt.table.awaitOwnership(ctx, id, routePatience); err != nil {
		return nil, err
	}
	for {
		h, err := rt.session(who, id, hello.GetJob(), user)
		switch {
		case err == nil:
			return h, nil
		case !errors.Is(err, errClosing):
			return nil, err
		}
		select {
		case <-h.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// session returns the session of an execution; it begins with the first controller that
// names it. With errClosing it is one that ends.
func (rt *router) session(who *attunev1.Principal, id string, job *attunev1.Job, user *attunev1.Principal) (*hosted, error) {
	rt.table.mu.Lock()
	defer rt.table.mu.Unlock()
	o, r, k := rt.table.owned[id], rt.table.view.Registrations[id], newKey(id, job, user)
	switch {
	case rt.table.ending:
		rt.cfg.Metrics.Add(metrics.SessionsRefused, 1, metrics.RefusedStopping)
		return nil, errGoing
	case o == nil:
		return nil, errMoved
	case r == nil:
		return nil, errUnregistered(id)
	}
	o.asked = time.Now()
	h := rt.table.hosted[k]
	if h == nil {
		record, err := o.next(r, job, user)
		if err != nil {
			return nil, err
		}
		if err := rt.roomForSession(k.uid); err != nil {
			return nil, err
		}
		if h, err = rt.begin(o, r, record, k, user); err != nil {
			return nil, err
		}
		rt.table.hosted[k] = h
	}
	err := h.admit(who, user)
	return h, err
}

// roomForSession says whether a user may have one session more: there are as many job
// ids as they like. Beyond their share they have as many as are still free, so that
// there is room for whoever comes next. The caller holds table.mu.
func (rt *router) roomForSession(uid uint32) error {
	n := 0
	for k := range rt.table.hosted {
		if k.uid == uid {
			n++
		}
	}
	switch {
	case !quota.Fair(n, len(rt.table.hosted), rt.cfg.MaxSessions, userShare):
		return rt.refuse(metrics.RefusedShare, "user %d has %d of %d sessions, and others may need those of %d that are free", uid, n, len(rt.table.hosted), rt.cfg.MaxSessions)
	case !rt.begun.Take(uid):
		return rt.refuse(metrics.RefusedOften, "sessions of user %d begin too often; one may every %v", uid, beginEvery)
	}
	return nil
}

// refuse is the error of a session that is not begun, for which the metrics have a reason. The
// caller holds table.mu.
func (rt *router) refuse(reason, format string, arguments ...any) error {
	err := status.Errorf(codes.ResourceExhausted, format, arguments...)
	rt.cfg.Metrics.Add(metrics.SessionsRefused, 1, reason)
	rt.refused++
	if now := rt.now(); now.Sub(rt.told) >= tellEvery {
		rt.told = now
		rt.log.Warn("sessions are not begun, and their jobs not tuned; nodes try again", "error", status.Convert(err).Message(),
			"max_sessions", rt.cfg.MaxSessions, "refused_since_start", rt.refused)
	}
	return err
}

// begin begins the session of an execution by its record, or goes on with one that another
// Analyzer began. The caller holds table.mu and enters it.
func (rt *router) begin(o *owned, r *attunev1.Registration, record *attunev1.SessionRecord, k key, user *attunev1.Principal) (*hosted, error) {
	record.Analyzer = rt.cfg.Record.GetId()
	h := &hosted{
		key: k, registration: r, epoch: o.lease.Epoch, record: record, log: rt.log.With("session", record.GetId(), logging.UserKey, k.uid),
		recorder: rt.recorder, reports: rt.reports, now: rt.now, linger: rt.cfg.Linger, delay: rt.cfg.TunletDelay,
		changed: queue.NewBell(), ends: make(chan ending, 1), done: make(chan struct{}), over: errOver,
		figures: figures{metrics: rt.cfg.Metrics},
	}
	own, err := objective.OfService(r.GetObjective())
	if err != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "registration %s: objective: %v", r.GetId(), err)
	}
	a, err := analyzer.New(analyzer.Config{
		Objective: own, NodesMeasure: nodesMeasure(own, r.GetObjective()),
		Knowledge: knowledgeOf(user, rt.cfg.Knowledge), Mode: r.GetMode(), JobID: record.GetId(), Command: record.GetCommandLine(), Version: rt.cfg.Version,
		TunletDirs: rt.cfg.TunletDirs, Tunlets: r.GetTunlets(), TunletOptions: tunletOptions(rt.cfg.TunletOptions, r), Digests: rt.cfg.Digests,
		DescriptionDir: rt.cfg.DescriptionDir, TunletLimits: rt.cfg.TunletLimits, TunletPool: rt.tunlets, User: strconv.FormatUint(uint64(k.uid), 10),
		Lease: rt.cfg.Lease, ProvenLease: rt.cfg.ProvenLease, Grace: rt.cfg.Grace, Inherit: inherited(r, record), ChangePrefix: randomTag() + "-",
		Changed: func() { h.changed.Ring() }, Audit: audit(rt.cfg.Audit, record.GetId()), Log: h.log,
	})
	if err != nil {
		return nil, status.Errorf(codes.Internal, "begin a session: %v", err)
	}
	h.analyzer, h.Session = a, a.Session()
	h.ctx = a.Begin(context.Background()) // not a channel's: its connection would stay in memory with the session
	h.log.Info("session begins", "job", k.job, "mode", r.GetMode(), "taken_over", record.GetProcesses() > 0)
	rt.cfg.Metrics.Add(metrics.SessionsBegun, 1)
	rt.running.Go(func() { rt.run(h) })
	return h, nil
}

// audit is where a session's decisions go; nil: nowhere.
func audit(place func(string) io.Writer, session string) io.Writer {
	if place == nil {
		return nil
	}
	return place("session " + session)
}

// inherited are the changes that an execution's earlier session has kept, if the
// registration still asks for any: it may have been changed while nobody had it.
func inherited(r *attunev1.Registration, of *attunev1.SessionRecord) []*attunev1.KeptChange {
	if r.GetMode() != core.ModeTune.String() {
		return nil
	}
	return of.GetKeptChanges()
}

// run runs a session to its end, and takes it out.
func (rt *router) run(h *hosted) {
	defer close(h.done)
	rt.table.remove(h, h.run())
}

// tunletOptions are the tunlets' settings: the registration's before the site'rt.
func tunletOptions(ofSite map[string]map[string]string, r *attunev1.Registration) map[string]map[string]string {
	out := make(map[string]map[string]string)
	for name, values := range ofSite {
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
