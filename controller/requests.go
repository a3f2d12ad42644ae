// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/actuate"
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
		c.addPoint(r.AddPoint)
	case *attunev1.ManageResponse_RemovePoint:
		c.removePoint(uint16(r.RemovePoint.GetPoint()))
	case *attunev1.ManageResponse_SetSampling:
		c.setSampling(r.SetSampling)
	case *attunev1.ManageResponse_Details:
		c.setDetails(r.Details.GetProcesses())
	case *attunev1.ManageResponse_Renew:
		c.renewed(r.Renew)
	case *attunev1.ManageResponse_End:
		c.over(r.End.GetKeep(), errEnded)
	case *attunev1.ManageResponse_Apply:
		connection := c.rejoin.connections()
		c.work.Go(func() {
			c.apply(connection, request.GetRequestId(), r.Apply.GetChanges())
			c.done(request.GetRequestId())
		})
		return
	case *attunev1.ManageResponse_Undo:
		c.work.Go(func() {
			c.undo(request.GetRequestId(), r.Undo.GetChangeIds())
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

func (c *Controller) addPoint(add *attunev1.AddPoint) {
	if add.GetPoint() == 0 || add.GetPoint() > math.MaxUint16 {
		c.pointStatus(&attunev1.PointStatus{
			Point: add.GetPoint(), State: attunev1.PointState_POINT_STATE_REFUSED,
			Reason: fmt.Sprintf("point index %d is outside 1..%d", add.GetPoint(), math.MaxUint16),
		})
		return
	}
	index := uint16(add.GetPoint())
	states, known, other := c.rejoin.asks(index, add.GetSpec())
	if known {
		for _, status := range states {
			c.tellPoint(status)
		}
		return
	}
	if other {
		c.takeOutPoint(index)
	}
	switch add.GetSpec().GetDelivery() {
	case attunev1.Delivery_DELIVERY_EVENT, attunev1.Delivery_DELIVERY_SAMPLED:
		c.events.Add(1)
	}
	if len(add.GetSpec().GetProcesses()) == 0 {
		c.early.holds(c, func() { c.placer.Add(index, add.GetSpec()) })
	} else {
		c.placer.Add(index, add.GetSpec())
	}
	c.needAll(add.GetSpec())
	c.paced.Ring() // the pace depends on the points
}

func (c *Controller) removePoint(index uint16) {
	c.rejoin.drops(index)
	c.takeOutPoint(index)
	c.early.lets(c)
}

func (c *Controller) takeOutPoint(index uint16) {
	spec := c.placer.Remove(index)
	switch spec.GetDelivery() {
	case attunev1.Delivery_DELIVERY_EVENT, attunev1.Delivery_DELIVERY_SAMPLED:
		c.events.Add(-1)
	}
}

func (c *Controller) setSampling(set *attunev1.SetSampling) {
	period, interval := max(set.GetPeriodNanos(), 0), max(set.GetAggregateNanos(), 0)
	if interval == 0 {
		interval = period
	}
	c.sampling.Store(period)
	c.aggregates.setInterval(time.Duration(interval))
	c.resampled.Ring()
}

func (c *Controller) pointStatus(status *attunev1.PointStatus) {
	c.rejoin.tells(status)
	c.tellPoint(status)
}

func (c *Controller) tellPoint(status *attunev1.PointStatus) {
	c.answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Point{Point: status}})
}

// apply makes changes, all or nothing. If the connection by which they were
// asked for is lost meanwhile, they are the Analyzer's only if it says so.
func (c *Controller) apply(connection uint64, requestID string, changes []*attunev1.Change) {
	if why := c.config.Untouched(); why != "" {
		c.answerAll(requestID, refuseAll(changes, why))
		return
	}
	if why := c.whyNot(changes); why != nil {
		c.answerAll(requestID, refuseAll(changes, why.Error()))
		return
	}
	c.prepare(changes)
	items := make([]actuate.Item, 0, len(changes))
	for _, change := range changes {
		item := actuate.Item{Change: change}
		if t := c.members.Get(change.GetProcess()); t != nil {
			item.Process = t
		}
		items = append(items, item)
	}
	c.answerAll(requestID, c.actuator.ApplySet(c.ctx, items, actuate.SetHooks{
		Applied: func(change *attunev1.Change) {
			c.lease(connection, change)
		},
		Undoing: func(changeID string) { c.leases.owe(changeID, time.Now()) },
	}))
}

// lease begins the lease of a change.
func (c *Controller) lease(connection uint64, change *attunev1.Change) {
	unnamed := connection != c.rejoin.connections()
	c.leases.add(change.GetId(), time.Duration(change.GetLeaseNanos()), unnamed, time.Now())
}

func refuseAll(changes []*attunev1.Change, reason string) (results []*attunev1.ActionResult) {
	for _, change := range changes {
		results = append(results, &attunev1.ActionResult{
			ChangeId: change.GetId(), Outcome: attunev1.Outcome_OUTCOME_REFUSED, Reason: reason,
		})
	}
	return results
}

func (c *Controller) undo(requestID string, changeIDs []string) {
	results := make([]*attunev1.ActionResult, 0, len(changeIDs))
	for _, id := range slices.Backward(changeIDs) {
		results = append(results, c.undoOne(id))
	}
	c.answerAll(requestID, results)
}

// undoOne takes a change back. If that fails for the time being, statusLoop
// tries again.
func (c *Controller) undoOne(changeID string) *attunev1.ActionResult {
	c.leases.owe(changeID, time.Now())
	return c.actuator.Undo(context.WithoutCancel(c.ctx), changeID)
}

func (c *Controller) answerAll(requestID string, results []*attunev1.ActionResult) {
	for _, result := range results {
		result.RequestId = requestID
		c.config.Answered(result)
		c.answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Result{Result: result}})
	}
}
