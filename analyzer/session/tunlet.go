// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	"github.com/attune-hpc/attune/analyzer/session/calls"
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

// tunlet is one instance of a tunlet; after a restart there is another one. It belongs
// to the loop; its worker makes the calls.
type tunlet struct {
	holder
	teller  *teller
	post    func(func()) bool  // hands to the loop
	judge   func(core.Verdict) // takes over what it thinks of a proposal, in the loop
	service attunev1.TunletServiceClient
	worker  *calls.Worker
	maxNews func() int // how many calls that must not get lost may wait for it
	feed    feed.Feed  // what it gets

	tickQueued bool
	toldEnd    bool   // it knows that the application has ended
	lostByEnd  uint64 // how much it did not get before that
	refusals   int
	remarks    int
	objected   bool // people know that it has values of its objective that nothing is judged by
	errors     int
}

// granted implements hearer.
func (t *tunlet) granted(w wish, spec *attunev1.MeasurePoint, p *point) {
	r := w.recorded(t.name)
	r.Point = p.index
	t.teller.emitAsk(r)
	t.feed.Add(p.index, spec)
	for _, st := range p.status {
		t.changed(w, st)
	}
}

// refused implements hearer: it tells the tunlet, as long as there is hope that it
// listens. A tunlet knows its points by their processes; 0 stands for all. The bound grows with
// the processes, so that one point refused in all of them leaves room for others, and is half of
// what would make the tunlet count as hung.
func (t *tunlet) refused(w wish, spec *attunev1.MeasurePoint, reason string) {
	processes := spec.GetProcesses()
	if len(processes) == 0 {
		processes = []uint64{0}
	}
	for _, process := range processes {
		if t.refusals++; t.refusals <= t.maxNews()/2 {
			t.changed(w, &attunev1.PointStatus{State: attunev1.PointState_POINT_STATE_REFUSED, Process: process, Reason: reason})
		}
	}
}

// tunletRemarks bounds the remarks of one instance.
const tunletRemarks = 50

// remark tells people what a tunlet says, or what is wrong with it, within bounds.
func (t *tunlet) remark(process uint64, text string) {
	switch t.remarks++; {
	case t.remarks <= tunletRemarks:
		t.teller.emitRemark(t.name, process, text)
	case t.remarks == tunletRemarks+1:
		t.teller.emitRemark(ownName, 0, fmt.Sprintf("tunlet %s has made %d remarks; further ones are not told before it is started again", t.name, tunletRemarks))
	}
}

// released implements hearer.
func (t *tunlet) released(w wish, p *point) {
	t.feed.Remove(p.index, w.id)
	r := w.recorded(t.name)
	r.Point, r.Over = p.index, true
	t.teller.emitAsk(r)
}

// tables implements party.
func (t *tunlet) tables(process uint64) []uint32 { return t.feed.Details(process) }

// reaction makes a call of one whose answer is a reaction.
func reaction[Q any, R interface{ GetReaction() *attunev1.Reaction }](
	call func(context.Context, Q, ...grpc.CallOption) (R, error), req Q,
) func(context.Context) (*attunev1.Reaction, error) {
	return func(ctx context.Context) (*attunev1.Reaction, error) {
		resp, err := call(ctx, req)
		return resp.GetReaction(), err
	}
}

// maxNews bounds the calls that must not get lost and wait for a tunlet, newsOfProcess more for
// each process: one that starts in a large job is told of each process at once, and of each of
// its points there. A tunlet that lets more pile up is hung.
const (
	maxNews       = 8192
	newsOfProcess = 32
)

// news queues a call that must not get lost.
func (t *tunlet) news(method string, do func(context.Context) (*attunev1.Reaction, error)) {
	t.worker.Push(calls.Call{Method: method, Do: do})
}

func (t *tunlet) applicationStarted(req *attunev1.ApplicationStartedRequest) {
	t.news("ApplicationStarted", reaction(t.service.ApplicationStarted, req))
}

func (t *tunlet) processStarted(info *attunev1.Process, update bool) {
	t.news("ProcessStarted", reaction(t.service.ProcessStarted, &attunev1.ProcessStartedRequest{Process: info, Update: update}))
}

// processEnded tells of the end, and before it of what the tunlet did not get.
func (t *tunlet) processEnded(ended *attunev1.ProcessEnded) {
	if lost := t.worker.TakeUntold(ended.GetProcess()); lost > 0 {
		c := t.eventsCall(0, &attunev1.HandleEventsRequest{
			Records: []*attunev1.NamedRecords{{Process: ended.GetProcess(), Lost: lost}},
		})
		c.Data = false // it must not get lost itself
		t.worker.Push(c)
	}
	t.news("ProcessEnded", reaction(t.service.ProcessEnded, &attunev1.ProcessEndedRequest{Ended: ended}))
}

// changed implements hearer.
func (t *tunlet) changed(w wish, st *attunev1.PointStatus) {
	t.news("PointChanged", reaction(t.service.PointChanged, &attunev1.PointChangedRequest{PointId: w.id, Status: st}))
}

func (t *tunlet) proposalChanged(req *attunev1.ProposalChangedRequest) {
	t.news("ProposalChanged", reaction(t.service.ProposalChanged, req))
}

// evaluate asks for a verdict. An error is no opinion.
func (t *tunlet) evaluate(req *attunev1.EvaluateRequest) {
	verdict := core.Verdict{Tunlet: t.name, Proposal: req.GetProposalId()}
	t.worker.Push(calls.Call{
		Method: "Evaluate",
		Do: func(ctx context.Context) (*attunev1.Reaction, error) {
			resp, err := t.service.Evaluate(ctx, req)
			verdict.Verdict, verdict.Reason = resp.GetVerdict(), resp.GetReason()
			return nil, err
		},
		Done: func() { t.post(func() { t.judge(verdict) }) },
	})
}

// handleSamples delivers what the tunlet wants of a round, if it keeps up. It shares
// the samples with other tunlets.
func (t *tunlet) handleSamples(round *attunev1.SampleBatch) {
	for _, own := range t.feed.Samples(round) {
		t.worker.Push(t.eventsCall(uint64(len(own.GetSamples().GetSamples())), own))
	}
}

// handleAggregates delivers those of its points, if it keeps up.
func (t *tunlet) handleAggregates(b *attunev1.AggregateBatch) {
	if own := t.feed.Aggregates(b); own != nil {
		t.worker.Push(t.eventsCall(uint64(len(own.GetAggregates())), own))
	}
}

// handleRecords delivers those of its points, together with others that wait, if it
// keeps up.
func (t *tunlet) handleRecords(all *attunev1.NamedRecords) {
	own, records := t.feed.Records(all)
	if own == nil {
		return
	}
	req := &attunev1.HandleEventsRequest{Records: []*attunev1.NamedRecords{own}}
	c := t.eventsCall(records, req)
	c.Records = req
	t.worker.Push(c)
}

func (t *tunlet) eventsCall(events uint64, req *attunev1.HandleEventsRequest) calls.Call {
	return calls.Call{
		Method: "HandleEvents", Data: true, Events: events, Size: int64(proto.Size(req)),
		Do: reaction(t.service.HandleEvents, req),
	}
}

// tick tells the time by the session's clock, unless the tunlet has not heard the last one yet.
func (t *tunlet) tick(now int64) {
	if t.tickQueued {
		return
	}
	t.tickQueued = true
	t.worker.Push(calls.Call{
		Method: "Tick",
		Do:     reaction(t.service.Tick, &attunev1.TickRequest{UnixNano: now}),
		Done:   func() { t.post(func() { t.tickQueued = false }) },
	})
}

// lost is how much it did not get. What comes when it knows of the application's end is of
// no use any more, and no loss.
func (t *tunlet) lost() uint64 {
	if t.toldEnd {
		return t.lostByEnd
	}
	return t.worker.Lost()
}

// applicationEnded tells the end, and makes Finish wait for the answer.
func (t *tunlet) applicationEnded(now int64) {
	t.worker.Push(calls.Call{
		Method: "ApplicationEnded", Urgent: true,
		Do: func(ctx context.Context) (*attunev1.Reaction, error) {
			_, err := t.service.ApplicationEnded(ctx, &attunev1.ApplicationEndedRequest{UnixNano: now})
			return nil, err
		},
		Done: func() {
			lost := t.worker.Lost()
			t.post(func() { t.toldEnd, t.lostByEnd = true, lost })
		},
	})
}
