// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/attune-hpc/attune/controller/link"
	"github.com/attune-hpc/attune/internal/beat"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// desk is where the Analyzer is served: what it asks for is done, and it is told what
// it has to know.
type desk struct {
	*parts

	overOnce    sync.Once
	strangeOnce sync.Once
}

// handle executes one request of the Analyzer. Tuning actions may wait for
// safe points, so each such request has a goroutine of its own; requests for
// one process wait for one another at the process.
func (d *desk) handle(_ context.Context, request *attunev1.ManageResponse) {
	if request.GetApply() != nil || request.GetUndo() != nil || request.GetEnd() != nil {
		d.config.Asked(request)
	}
	switch r := request.GetRequest().(type) {
	case *attunev1.ManageResponse_Want:
		d.wanted.Want(r.Want)
	case *attunev1.ManageResponse_Renew:
		d.changes.Renew(r.Renew)
	case *attunev1.ManageResponse_End:
		d.over(r.End.GetKeep(), errEnded)
	case *attunev1.ManageResponse_Apply:
		connection := d.changes.Connection()
		d.work.Go(func() {
			d.changes.Apply(connection, request.GetRequestId(), r.Apply.GetChanges())
			d.done(request.GetRequestId())
		})
		return
	case *attunev1.ManageResponse_Undo:
		d.work.Go(func() {
			d.changes.Undo(request.GetRequestId(), r.Undo.GetChangeIds())
			d.done(request.GetRequestId())
		})
		return
	default:
		d.strangeOnce.Do(func() {
			d.log.Warn("the analyzer asks for what this controller does not know, and is not given it; install the same version of Attune on both")
		})
	}
	d.done(request.GetRequestId())
}

// errEnded is why a session is over that the Analyzer has ended.
var errEnded = errors.New("the analyzer has ended the session")

// over tells that the session is over, once. Whoever hears of it may stop the
// controller, which waits for its goroutines, of which this may be one.
func (d *desk) over(keep []string, reason error) {
	if d.config.Over != nil {
		d.overOnce.Do(func() { go d.config.Over(keep, reason) })
	}
}

func (d *desk) answer(message *attunev1.ManageRequest) {
	if err := d.client.Answer(context.Background(), message); err != nil {
		d.log.Debug("answer not delivered", "error", err)
	}
}

func (d *desk) done(requestID string) {
	d.answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Done{
		Done: &attunev1.RequestDone{RequestId: requestID},
	}})
}

// lost goes on without an Analyzer: changes until their leases end, measure
// points as long as one, samples and details not at all.
func (d *desk) lost() {
	d.wanted.Lost(time.Now())
	d.changes.Orphan()
	d.outbox.Hush()
}

// opened tells an Analyzer that was found what it has to know.
func (d *desk) opened(send func(*attunev1.PublishRequest) error, open func()) {
	d.outbox.Retell(send, open)
}

// publish queues what is not to be lost. It may wait for the Analyzer.
func (d *desk) publish(message *attunev1.PublishRequest) {
	if err := d.client.Publish(context.Background(), message); err != nil {
		d.log.Debug("event not delivered", "error", err)
	}
}

// undelivered counts what did not reach the Analyzer.
func (d *desk) undelivered(loss link.Loss) {
	if batch := loss.Batch(); batch != nil {
		d.meter.Returned(batch)
	}
	d.losses.Add(loss)
}

// hello is how the controller introduces itself.
func (d *desk) hello() *attunev1.ControllerHello {
	host, _ := os.Hostname() // only for people
	return &attunev1.ControllerHello{
		ControllerId: d.config.ID, Host: host, Protocol: attunev1.Protocol,
		Registration: d.config.Session.Registration, Job: d.config.Session.Job, User: d.config.Session.User, Mode: d.config.Session.Mode,
		InForce: d.changes.InForce(),
	}
}

// statusPeriod is how often the controller accounts for itself.
const statusPeriod = time.Second

// statusLoop accounts for the controller, and undoes what the Analyzer no
// longer stands for.
func (d *desk) statusLoop(ctx context.Context) error {
	beat.Tick(ctx, statusPeriod, func(now time.Time) {
		d.sendStatus()
		if waiting := d.admission.Refresh(); waiting > 0 {
			d.log.Debug("libraries that were loaded again are patched", "processes", waiting)
		}
		d.wanted.GiveUp(now, d.config.Lease)
		d.changes.Look(now)
	})
	return nil
}

func (d *desk) sendStatus() {
	status, err := d.meter.Status()
	if err != nil {
		d.log.Debug("own usage", "error", err)
	}
	d.losses.Tell(status)
	d.answer(&attunev1.ManageRequest{Message: &attunev1.ManageRequest_Status{Status: status}})
}
