// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// handle executes one request of the Analyzer. Tuning actions may wait for
// safe points, so each such request has a goroutine of its own; requests for
// one process wait for one another at the process.
func (c *Controller) handle(_ context.Context, request *attunev1.ManageResponse) {
	if request.GetApply() != nil || request.GetUndo() != nil || request.GetEnd() != nil {
		c.config.Asked(request)
	}
	switch r := request.GetRequest().(type) {
	case *attunev1.ManageResponse_AddPoint:
		c.points.Add(r.AddPoint)
	case *attunev1.ManageResponse_RemovePoint:
		c.points.Remove(uint16(r.RemovePoint.GetPoint()))
	case *attunev1.ManageResponse_SetSampling:
		c.setSampling(r.SetSampling)
	case *attunev1.ManageResponse_Details:
		c.meter.Want(r.Details.GetWants())
	case *attunev1.ManageResponse_Renew:
		c.renewed(r.Renew)
	case *attunev1.ManageResponse_End:
		c.over(r.End.GetKeep(), errEnded)
	case *attunev1.ManageResponse_Apply:
		connection := c.changes.Connection()
		c.work.Go(func() {
			c.changes.Apply(connection, request.GetRequestId(), r.Apply.GetChanges())
			c.done(request.GetRequestId())
		})
		return
	case *attunev1.ManageResponse_Undo:
		c.work.Go(func() {
			c.changes.Undo(request.GetRequestId(), r.Undo.GetChangeIds())
			c.done(request.GetRequestId())
		})
		return
	}
	c.done(request.GetRequestId())
}

// errEnded is why a session is over that the Analyzer has ended.
var errEnded = errors.New("the analyzer has ended the session")

// over tells that the session is over, once. Whoever hears of it may stop the
// controller, which waits for its goroutines, of which this may be one.
func (c *Controller) over(keep []string, reason error) {
	if c.config.Over != nil {
		c.overOnce.Do(func() { go c.config.Over(keep, reason) })
	}
}

func (c *Controller) answer(message *attunev1.ManageRequest) {
	if err := c.client.Answer(context.Background(), message); err != nil {
		c.log.Debug("answer not delivered", "error", err)
	}
}

func (c *Controller) done(requestID string) {
	c.answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Done{
		Done: &attunev1.RequestDone{RequestId: requestID},
	}})
}

func (c *Controller) setSampling(set *attunev1.SetSampling) {
	period, interval := max(set.GetPeriodNanos(), 0), max(set.GetAggregateNanos(), 0)
	if interval == 0 {
		interval = period
	}
	c.meter.Set(time.Duration(period), time.Duration(interval))
}

// lost goes on without an Analyzer: changes until their leases end, measure
// points as long as one, samples and details not at all.
func (c *Controller) lost() {
	c.points.Lost(time.Now())
	c.changes.Orphan()
	c.outbox.Hush(c.members.List())
	c.meter.Set(0, 0)
	c.meter.Want(nil)
}

// opened tells an Analyzer that was found what it has to know.
func (c *Controller) opened(send func(*attunev1.PublishRequest) error, open func()) {
	found := func() { // one that breaks before is none
		c.points.Found()
		open()
	}
	c.outbox.Retell(c.members.List(), send, found)
}

// renewed takes the Analyzer's word for changes. Word for all of them comes
// after the points that it wants again.
func (c *Controller) renewed(renew *attunev1.RenewLease) {
	c.changes.Renew(renew.GetChanges())
	if len(renew.GetChanges()) == 0 {
		c.points.DropOutlived()
	}
}
