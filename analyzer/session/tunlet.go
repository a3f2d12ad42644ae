// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/internal/queue"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/feed"
)

// Tunlet is a running tunlet.
type Tunlet interface {
	// Info is its account of itself.
	Info() *attunev1.DescribeResponse
	// Service takes the calls.
	Service() attunev1.TunletServiceClient
	// Kill ends it at once; TunletGone follows. It does not wait.
	Kill(reason string)
}

// tunlet is one instance of a tunlet; after a restart there is another one.
type tunlet struct {
	holder
	session *Session
	info    *attunev1.DescribeResponse
	service attunev1.TunletServiceClient
	kill    func(reason string)
	worker  *worker
	feed    feed.Feed // what it gets

	tickQueued    bool
	toldEnd       bool // it knows that the application has ended
	refusedPoints int
	remarks       int
	errors        int
}

// TunletReady tells of a tunlet that answers calls.
func (s *Session) TunletReady(tn Tunlet) {
	s.post(func() { s.addTunlet(tn) })
}

// TunletGone tells that a tunlet's process has ended, or that one which was
// asleep cannot be started. final is set if it will not be started again.
func (s *Session) TunletGone(name, reason string, final bool) {
	s.post(func() { s.removeTunlet(name, reason, final) })
}

// addTunlet takes in a tunlet and tells it what there is already.
func (s *Session) addTunlet(tn Tunlet) {
	t := &tunlet{session: s, info: tn.Info(), service: tn.Service(), kill: tn.Kill}
	t.holder = holder{name: t.info.GetName(), points: map[wish]*point{}, hears: t}
	ctx, cancel := context.WithCancel(context.Background())
	t.worker = &worker{
		timeout: s.cfg.callTimeout, ctx: ctx, cancel: cancel, wake: queue.NewBell(),
		hung:   tn.Kill,
		react:  func(r *attunev1.Reaction) { s.post(func() { s.react(t, r) }) },
		failed: func(method string, err error) { s.post(func() { s.callFailed(t, method, err) }) },
	}
	s.tunlets[t.name] = t
	s.wants.parties[t] = true
	s.lossesTold.before[t.name] += 0 // it is listed from now on
	s.workers.Go(t.worker.run)
	s.step(core.TunletReady{Info: t.info})
	t.applicationStarted()
	for _, p := range s.processes.order {
		if p.introduced && !p.ended {
			t.processStarted(p.info, false)
		}
	}
	s.awake(t)
	s.hurry()
	if s.finishing {
		t.applicationEnded(s.cfg.now())
	}
}

// removeTunlet drops a tunlet and what it asked for.
func (s *Session) removeTunlet(name, reason string, final bool) {
	t := s.tunlets[name]
	if t == nil {
		delete(s.sleepers.waking, name)
		return
	}
	t.worker.stop()
	delete(s.tunlets, name)
	s.lossesTold.before[name] += t.worker.lost()
	s.points.releaseAll(&t.holder)
	s.wants.leave(t)
	s.step(core.TunletGone{Tunlet: name, Reason: reason, Final: final})
}

// callFailed notes a call that was answered with an error. It is logged once:
// a tunlet that fails at one tick fails at all of them.
func (s *Session) callFailed(t *tunlet, method string, err error) {
	if t.errors++; t.errors == 1 {
		s.log.Warn("tunlet answers with an error; further ones are not logged", "tunlet", t.name, "method", method, "error", err)
		s.emitRemark(ownName, 0, fmt.Sprintf("tunlet %s answered %s with an error: %v", t.name, method, err))
	}
}

// The limits of one reaction. What exceeds them is ignored.
const (
	maxObjectives = 8192
	maxProposals  = 256
	maxRequests   = 2 * maxPoints // of points: all that a tunlet may have, and as many refusals
	maxInterests  = 65536         // in processes
	maxLevels     = 256           // of one interest
	tunletRemarks = 50            // of one instance
)

// react does what a tunlet wants.
func (s *Session) react(t *tunlet, r *attunev1.Reaction) {
	if s.tunlets[t.name] != t {
		return // it has gone meanwhile
	}
	s.emitReaction(t.name, r)
	for _, i := range limit(r.GetInterests(), maxInterests) {
		if s.processes.lives(i.GetProcess()) {
			t.feed.Set(&attunev1.SampleInterest{Process: i.GetProcess(), All: i.GetAll(), Levels: limit(i.GetLevels(), maxLevels)})
		}
	}
	for _, w := range limit(r.GetWants(), maxInterests) {
		if s.processes.lives(w.GetProcess()) && t.feed.SetDetails(w) {
			s.wants.mergeTables(w.GetProcess())
			s.hurry()
		}
	}
	for _, id := range limit(r.GetRemovePoints(), maxRequests) {
		s.points.release(&t.holder, wish{id: id})
	}
	if len(r.GetAddPoints())+len(r.GetProposals()) > 0 {
		s.hurry()
	}
	for _, spec := range limit(r.GetAddPoints(), maxRequests) {
		s.points.request(&t.holder, wish{id: spec.GetId()}, spec)
	}
	for _, o := range limit(r.GetObjectives(), maxObjectives) {
		s.step(core.Sample{Tunlet: t.name, Scope: o.GetScope(), Value: o.GetValue(), At: s.sinceUnix(o.GetUnixNano())})
	}
	for _, w := range limit(r.GetWithdrawals(), maxProposals) {
		s.step(core.Withdraw{Tunlet: t.name, Proposal: w.GetProposalId(), Processes: w.GetProcesses(), Reason: w.GetReason()})
	}
	for _, p := range limit(r.GetProposals(), maxProposals) {
		s.step(core.Propose{Tunlet: t.name, Proposal: p})
	}
	for _, m := range r.GetRemarks() {
		if t.remarks++; t.remarks <= tunletRemarks {
			s.emitRemark(t.name, m.GetProcess(), m.GetText())
		}
	}
}

// limit returns at most the first n elements.
func limit[T any](list []T, n int) []T { return list[:min(n, len(list))] }

// granted implements hearer.
func (t *tunlet) granted(w wish, spec *attunev1.MeasurePoint, p *point) {
	r := w.recorded(t.name)
	r.Point = p.index
	t.session.emitAsk(r)
	t.feed.Add(p.index, spec)
	for _, st := range p.status {
		t.pointChanged(w.id, st)
	}
}

// refused implements hearer: it tells the tunlet, as long as there is hope that it
// listens.
func (t *tunlet) refused(w wish, reason string) {
	if t.refusedPoints++; t.refusedPoints <= maxPoints {
		t.pointChanged(w.id, &attunev1.PointStatus{State: attunev1.PointState_POINT_STATE_REFUSED, Reason: reason})
	}
}

// changed implements hearer.
func (t *tunlet) changed(w wish, st *attunev1.PointStatus) { t.pointChanged(w.id, st) }

// released implements hearer.
func (t *tunlet) released(w wish, p *point) {
	t.feed.Remove(p.index, w.id)
	r := w.recorded(t.name)
	r.Point, r.Over = p.index, true
	t.session.emitAsk(r)
}

// tables implements party.
func (t *tunlet) tables(process uint64) []uint32 { return t.feed.Details(process) }

// news queues a call that must not get lost.
func (t *tunlet) news(method string, do func(context.Context) (*attunev1.Reaction, error)) {
	t.worker.push(call{method: method, do: do})
}

func (t *tunlet) applicationStarted() {
	s := t.session
	req := &attunev1.ApplicationStartedRequest{UnixNano: s.start.UnixNano(), Application: s.application()}
	t.news("ApplicationStarted", func(ctx context.Context) (*attunev1.Reaction, error) {
		resp, err := t.service.ApplicationStarted(ctx, req)
		return resp.GetReaction(), err
	})
}

func (t *tunlet) processStarted(info *attunev1.Process, update bool) {
	t.news("ProcessStarted", func(ctx context.Context) (*attunev1.Reaction, error) {
		resp, err := t.service.ProcessStarted(ctx, &attunev1.ProcessStartedRequest{Process: info, Update: update})
		return resp.GetReaction(), err
	})
}

// processEnded tells of the end, and before it of what the tunlet did not get.
func (t *tunlet) processEnded(ended *attunev1.ProcessEnded) {
	if lost := t.worker.takeUntold(ended.GetProcess()); lost > 0 {
		c := t.eventsCall(0, &attunev1.HandleEventsRequest{
			Records: []*attunev1.NamedRecords{{Process: ended.GetProcess(), Lost: lost}},
		})
		c.data = false // it must not get lost itself
		t.worker.push(c)
	}
	t.news("ProcessEnded", func(ctx context.Context) (*attunev1.Reaction, error) {
		resp, err := t.service.ProcessEnded(ctx, &attunev1.ProcessEndedRequest{Ended: ended})
		return resp.GetReaction(), err
	})
}

func (t *tunlet) pointChanged(id string, st *attunev1.PointStatus) {
	t.news("PointChanged", func(ctx context.Context) (*attunev1.Reaction, error) {
		resp, err := t.service.PointChanged(ctx, &attunev1.PointChangedRequest{PointId: id, Status: st})
		return resp.GetReaction(), err
	})
}

func (t *tunlet) proposalChanged(req *attunev1.ProposalChangedRequest) {
	t.news("ProposalChanged", func(ctx context.Context) (*attunev1.Reaction, error) {
		resp, err := t.service.ProposalChanged(ctx, req)
		return resp.GetReaction(), err
	})
}

// evaluate asks for a verdict. An error is no opinion.
func (t *tunlet) evaluate(req *attunev1.EvaluateRequest) {
	verdict := core.Verdict{Tunlet: t.name, Proposal: req.GetProposalId()}
	t.worker.push(call{
		method: "Evaluate",
		do: func(ctx context.Context) (*attunev1.Reaction, error) {
			resp, err := t.service.Evaluate(ctx, req)
			verdict.Verdict, verdict.Reason = resp.GetVerdict(), resp.GetReason()
			return nil, err
		},
		done: func(error) { t.session.post(func() { t.session.step(verdict) }) },
	})
}

// handleEvents delivers measured data, if the tunlet keeps up.
func (t *tunlet) handleEvents(events uint64, req *attunev1.HandleEventsRequest) {
	t.worker.push(t.eventsCall(events, req))
}

// handleRecords delivers records, together with others that wait.
func (t *tunlet) handleRecords(events uint64, records *attunev1.NamedRecords) {
	req := &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{records}}
	c := t.eventsCall(events, req)
	c.records = req
	t.worker.push(c)
}

func (t *tunlet) eventsCall(events uint64, req *attunev1.HandleEventsRequest) call {
	return call{
		method: "HandleEvents", data: true, events: events, size: int64(proto.Size(req)),
		do: func(ctx context.Context) (*attunev1.Reaction, error) {
			resp, err := t.service.HandleEvents(ctx, req)
			return resp.GetReaction(), err
		},
	}
}

// tick tells the time, unless the tunlet has not heard the last one yet.
func (t *tunlet) tick(now time.Time) {
	if t.tickQueued {
		return
	}
	t.tickQueued = true
	t.worker.push(call{
		method: "Tick",
		do: func(ctx context.Context) (*attunev1.Reaction, error) {
			resp, err := t.service.Tick(ctx, &attunev1.TickRequest{UnixNano: now.UnixNano()})
			return resp.GetReaction(), err
		},
		done: func(error) { t.session.post(func() { t.tickQueued = false }) },
	})
}

// applicationEnded tells the end, and makes Finish wait for the answer.
func (t *tunlet) applicationEnded(now time.Time) {
	t.worker.push(call{
		method: "ApplicationEnded",
		do: func(ctx context.Context) (*attunev1.Reaction, error) {
			_, err := t.service.ApplicationEnded(ctx, &attunev1.ApplicationEndedRequest{UnixNano: now.UnixNano()})
			return nil, err
		},
		done: func(error) { t.session.post(func() { t.toldEnd = true }) },
	})
}
