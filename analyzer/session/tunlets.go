// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/session/calls"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// The limits of one reaction. What exceeds them is ignored.
const (
	maxObjectives = 8192
	maxProposals  = 256
	maxRequests   = 2 * maxPoints // of points: all that a tunlet may have, and as many refusals
	maxInterests  = 65536         // in processes
	maxLevels     = 256           // of one interest
)

// tunlets are those that run. Each is told what happens, and has done what it answers.
// They belong to the loop.
type tunlets struct {
	clock       *clock
	inbox       *inbox
	teller      *teller
	log         *slog.Logger
	processes   *processes
	points      *points
	wants       *wants
	decider     *decider
	sleepers    *sleepers
	losses      *losses
	hurry       func()
	application *attunev1.Application
	timeout     time.Duration // of a call
	workers     *sync.WaitGroup

	running map[string]*tunlet
	ended   bool // they have been told of the end of the application
}

// add takes in a tunlet and tells it what there is already.
func (ts *tunlets) add(tn Tunlet) {
	t := &tunlet{
		teller: ts.teller, post: ts.inbox.post, judge: func(v core.Verdict) { ts.decider.step(v) },
		service: tn.Service(),
	}
	t.holder = holder{name: tn.Info().GetName(), points: map[wish]*point{}, hears: t}
	t.maxNews = func() int { return maxNews + newsOfProcess*len(ts.processes.byID) }
	t.worker = calls.New(calls.Config{
		Timeout: ts.timeout,
		MaxNews: t.maxNews,
		Hung:    tn.Kill,
		React:   func(r *attunev1.Reaction) { ts.inbox.post(func() { ts.answered(t, r) }) },
		Failed:  func(method string, err error) { ts.inbox.post(func() { ts.callFailed(t, method, err) }) },
	})
	ts.running[t.name] = t
	ts.wants.join(t)
	ts.losses.add(t.name, 0)
	ts.workers.Go(t.worker.Run)
	t.applicationStarted(&attunev1.ApplicationStartedRequest{
		UnixNano: ts.clock.start.UnixNano(), Application: proto.CloneOf(ts.application),
	})
	for _, p := range ts.processes.order {
		if p.introduced && !p.ended {
			t.processStarted(p.info, false)
		}
	}
	ts.decider.step(core.TunletReady{Info: tn.Info()}) // which tells it what it had changed in them
	for _, b := range ts.sleepers.leave(t.name) {
		t.handleSamples(b) // without details that others asked for
	}
	ts.hurry()
	if ts.ended {
		t.applicationEnded(ts.clock.unixNow())
	}
}

// remove drops a tunlet and what it asked for.
func (ts *tunlets) remove(name, reason string) {
	t := ts.running[name]
	if t == nil {
		ts.sleepers.leave(name)
		return
	}
	t.worker.Stop()
	delete(ts.running, name)
	ts.losses.add(name, t.lost())
	ts.points.releaseAll(&t.holder)
	ts.wants.leave(t)
	ts.decider.step(core.TunletGone{Tunlet: name, Reason: reason})
}

// stop ends the workers.
func (ts *tunlets) stop() {
	for _, t := range ts.running {
		t.worker.Stop()
	}
}

// lost is how much a tunlet did not get, since it was started last.
func (ts *tunlets) lost(name string) uint64 {
	if t := ts.running[name]; t != nil {
		return t.lost()
	}
	return 0
}

// callFailed notes a call that was answered with an error. It is logged once:
// a tunlet that fails at one tick fails at all of them.
func (ts *tunlets) callFailed(t *tunlet, method string, err error) {
	if t.errors++; t.errors == 1 {
		ts.log.Warn("tunlet answers with an error; further ones are not logged", "tunlet", t.name, "method", method, "error", err)
		ts.teller.emitRemark(ownName, 0, fmt.Sprintf("tunlet %s answered %s with an error: %v", t.name, method, err))
	}
}

// answered does what a tunlet wants, and has it rest where that took long.
func (ts *tunlets) answered(t *tunlet, r *attunev1.Reaction) {
	began := ts.clock.wall()
	ts.react(t, r)
	t.worker.Rest(restAfter(ts.clock.wall().Sub(began)))
}

// react does what a tunlet wants.
func (ts *tunlets) react(t *tunlet, r *attunev1.Reaction) {
	if ts.running[t.name] != t {
		return // it has gone meanwhile
	}
	ts.teller.emitReaction(t.name, r)
	for _, i := range limit(r.GetInterests(), maxInterests) {
		if ts.processes.lives(i.GetProcess()) {
			t.feed.Set(&attunev1.SampleInterest{
				Process: i.GetProcess(), All: i.GetAll(), Levels: limit(i.GetLevels(), maxLevels), AfterNanos: i.GetAfterNanos(),
			})
		}
	}
	for _, w := range limit(r.GetWants(), maxInterests) {
		if ts.processes.lives(w.GetProcess()) && t.feed.SetDetails(w) {
			ts.wants.mergeTables(w.GetProcess())
			ts.hurry()
		}
	}
	for _, id := range limit(r.GetRemovePoints(), maxRequests) {
		ts.points.release(&t.holder, wish{id: id})
	}
	if len(r.GetAddPoints())+len(r.GetProposals()) > 0 {
		ts.hurry()
	}
	for _, spec := range limit(r.GetAddPoints(), maxRequests) {
		w := wish{id: spec.GetId()}
		switch p := t.points[w]; {
		case w.id == "":
			t.remark(0, "a measure point without an id is not asked for: give it one, by which what is measured comes")
			continue
		case p != nil && p.key != keyOf(spec):
			t.remark(0, fmt.Sprintf("measure point %q is there already, for something else: it stays, and the new one is not asked for; remove the first one before, or give the new one another id", spec.GetId()))
			continue
		}
		ts.points.request(&t.holder, w, spec)
	}
	for _, o := range limit(r.GetObjectives(), maxObjectives) {
		ts.measured(t, o)
	}
	for _, w := range limit(r.GetWithdrawals(), maxProposals) {
		ts.decider.step(core.Withdraw{Tunlet: t.name, Proposal: w.GetProposalId(), Processes: w.GetProcesses(), Reason: w.GetReason()})
	}
	for _, p := range limit(r.GetProposals(), maxProposals) {
		ts.decider.step(core.Propose{Tunlet: t.name, Proposal: p})
	}
	for _, m := range r.GetRemarks() {
		t.remark(m.GetProcess(), m.GetText())
	}
}

// measured takes a value of a tunlet's objective. That nothing can be judged by one is said
// once: the SDK for Go does not let such values pass, but not every tunlet is made with that.
func (ts *tunlets) measured(t *tunlet, o *attunev1.ObjectiveSample) {
	err := attunev1.CheckObjective(o.GetValue())
	switch {
	case err == nil:
		ts.decider.step(core.Sample{Tunlet: t.name, Scope: o.GetScope(), Value: o.GetValue(), At: ts.clock.sinceStart(time.Unix(0, o.GetUnixNano()))})
	case !t.objected:
		t.objected = true
		t.remark(0, fmt.Sprintf("the objective in scope %q: %v", o.GetScope(), err))
	}
}

const (
	// longReaction is how long the loop may be busy with what a tunlet answers, before
	// that is held against it.
	longReaction = 10 * time.Millisecond
	// loopShare is what one tunlet may have of the loop, at most.
	loopShare = 0.25
)

// restAfter is how long a tunlet is not called after it has kept the loop busy.
func restAfter(busy time.Duration) time.Duration {
	if busy < longReaction {
		return 0
	}
	return time.Duration(float64(busy) * (1/loopShare - 1))
}

// limit returns at most the first n elements.
func limit[T any](list []T, n int) []T { return list[:min(n, len(list))] }

// processStarted tells of a process, or tells of it anew.
func (ts *tunlets) processStarted(info *attunev1.Process, update bool) {
	for _, t := range ts.running {
		t.processStarted(info, update)
	}
}

// forget forgets what tunlets want of a process that has ended.
func (ts *tunlets) forget(process uint64) {
	for _, t := range ts.running {
		t.feed.Forget(process)
	}
}

// processEnded tells of the end of a process, with which points of its own end.
func (ts *tunlets) processEnded(ended *attunev1.ProcessEnded) {
	for _, t := range ts.running {
		t.processEnded(ended)
		ts.points.releaseEnded(&t.holder, ended.GetProcess())
	}
}

// tick tells the time.
func (ts *tunlets) tick() {
	now := ts.clock.unixNow()
	for _, t := range ts.running {
		t.tick(now)
	}
}
