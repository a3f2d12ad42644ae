// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// connections are those of the controllers, which come, break, come back or do not.
// The exported methods are safe for use by several goroutines; the rest belongs to the
// loop.
type connections struct {
	clock       *clock
	inbox       *inbox
	waiters     *waiters
	teller      *teller
	log         *slog.Logger
	controllers *controllers
	processes   *processes
	wants       *wants
	points      *points
	decider     *decider
	inheritance *inheritance
	population  *population
	hurry       func()
	grace       time.Duration   // for how long one is awaited
	refused     map[string]bool // hosts of which people were told that a controller is refused
	ending      bool            // the application has ended: connections may break
}

// ControllerConnected tells of a management channel, a controller's first or one
// after it lost the last.
func (cs *connections) ControllerConnected(hello *attunev1.ControllerHello, channel Controller) {
	cs.inbox.post(func() {
		cs.replaceLost(hello)
		c := cs.controllers.arrive(hello.GetControllerId())
		text := "%s on %s connected"
		if c.hello != nil {
			text = "%s on %s is back"
		}
		c.hello, c.channel, c.awaited, c.proven = hello, channel, false, nil
		cs.wants.connected(c)
		cs.teller.emitController(c.id, attunev1.ControllerState_CONTROLLER_STATE_CONNECTED, fmt.Sprintf(text, c.id, hello.GetHost()))
		cs.hurry()
		cs.inheritance.reconcile(c)
	})
}

// EventsConnected tells of an event channel, a controller's first or one after
// it lost the last: what it does not have any more has ended meanwhile.
func (cs *connections) EventsConnected(hello *attunev1.StreamHello) {
	cs.inbox.post(func() {
		c := cs.controllers.arrive(hello.GetControllerId())
		if c.channel == nil && !c.awaited && cs.grace > 0 { // else nobody would give it up
			c.awaited, c.lostAt = true, cs.clock.now()
		}
		for _, p := range cs.processes.running(c) {
			if !slices.Contains(hello.GetProcesses(), p.handle) {
				cs.population.end(p, nil)
			}
		}
	})
}

// ControllerGone tells that a management channel has ended: parted if the
// controller wanted that, else broken, and the controller is awaited for the
// time of Config.Grace. Processes of one that does not come are out of reach: it
// undoes their changes when their leases end.
func (cs *connections) ControllerGone(id string, channel Controller, parted bool) {
	cs.inbox.post(func() {
		c := cs.controllers.byID[id]
		if c == nil || c.channel != channel {
			return // another one has taken its place
		}
		c.channel = nil
		cs.decider.gone(c)
		switch {
		case parted:
			cs.emitGone(c, "disconnected")
			cs.endAll(c, true)
		case cs.grace == 0:
			cs.lose(c, "disconnected", true)
		default:
			c.awaited, c.lostAt = true, cs.clock.now()
			cs.teller.emitController(id, attunev1.ControllerState_CONTROLLER_STATE_AWAITED, id+" is out of reach")
		}
	})
}

// ControllerRefused tells of a controller that cannot serve the session, and why. It
// tries again and again; people are told once of each host.
func (cs *connections) ControllerRefused(host, why string) {
	cs.inbox.post(func() {
		if cs.refused[host] {
			return
		}
		cs.refused[host] = true
		cs.log.Warn("controller refused; nothing is measured or changed there", "host", host, "reason", why)
		cs.teller.emitRemark(ownName, 0, fmt.Sprintf("nothing is measured or changed on %s: %s", host, why))
	})
}

// Manage takes a message of a management channel.
func (cs *connections) Manage(id string, m *attunev1.ManageRequest) {
	cs.inbox.post(func() {
		c := cs.controllers.get(id)
		switch k := m.GetMessage().(type) {
		case *attunev1.ManageRequest_Result:
			if k.Result.GetRequestId() == "" {
				cs.inheritance.ended(c, k.Result)
			} else {
				cs.decider.result(c, k.Result)
			}
		case *attunev1.ManageRequest_Done:
			cs.decider.done(c, k.Done.GetRequestId())
		case *attunev1.ManageRequest_Point:
			cs.points.setStatus(c, k.Point)
		case *attunev1.ManageRequest_Status:
			c.status = k.Status
			cs.teller.emitStatus(c.id, c.account())
		case *attunev1.ManageRequest_TakenOver:
			cs.replaceHolders(c, k.TakenOver.GetChanges())
			cs.inheritance.takenOver(c, k.TakenOver.GetChanges())
		}
	})
}

// Dismiss tells the controllers that the session is over: they give back all but
// the changes to be kept and leave. It returns when they have left, or with
// ctx's error.
func (cs *connections) Dismiss(ctx context.Context, keep []string) error {
	return cs.waiters.until(ctx, "dismiss the controllers", func() {
		for _, c := range cs.controllers.byID {
			c.send(&attunev1.ManageResponse{RequestId: "end", Request: &attunev1.ManageResponse_End{End: &attunev1.EndSession{Keep: keep}}})
		}
	}, func() bool {
		for _, c := range cs.controllers.byID {
			if c.channel != nil {
				return false
			}
		}
		return true
	})
}

// renewLeases renews all leases.
func (cs *connections) renewLeases() {
	proven := cs.inheritance.proven()
	for _, c := range cs.controllers.byID {
		cs.renew(c, proven[c])
	}
}

// tellProven tells at once each controller that knows others which of its changes are
// proven good: what a controller has to do without its Analyzer it does to these.
func (cs *connections) tellProven() {
	proven := cs.inheritance.proven()
	for _, c := range cs.controllers.byID {
		if !slices.Equal(c.proven, proven[c]) {
			cs.renew(c, proven[c])
		}
	}
}

// renew renews the leases of a controller's changes, and says which are proven good
// where it knows others.
func (cs *connections) renew(c *controller, proven []string) {
	renew := &attunev1.RenewLease{}
	if !slices.Equal(c.proven, proven) {
		renew.Proven = &attunev1.ProvenChanges{Changes: proven, LeaseNanos: int64(cs.inheritance.lease)}
	}
	if c.send(&attunev1.ManageResponse{Request: &attunev1.ManageResponse_Renew{Renew: renew}}) {
		c.proven = proven
	}
}

// loseLate gives up controllers that did not come back in time.
func (cs *connections) loseLate() {
	for _, c := range cs.controllers.byID {
		if c.awaited && cs.clock.now()-c.lostAt >= cs.grace {
			cs.lose(c, "did not come back", true)
		}
	}
}

// replaceLost gives up an awaited controller whose node has another one by now:
// it has died, and a node has one for a session.
func (cs *connections) replaceLost(hello *attunev1.ControllerHello) {
	for _, c := range cs.controllers.byID {
		if c.awaited && c.id != hello.GetControllerId() && c.hello.GetHost() == hello.GetHost() {
			cs.inheritance.await(c)
			cs.lose(c, "was replaced", false)
		}
	}
}

// replaceHolders gives up who had changes that a controller has taken over: that one has
// ended, or it would still have them, though the end of its channel is not known yet.
func (cs *connections) replaceHolders(by *controller, changes []string) {
	taken := func(id string) bool { return slices.Contains(changes, id) }
	for _, c := range cs.controllers.byID {
		if c != by && c.hello.GetHost() == by.hello.GetHost() && slices.ContainsFunc(cs.inheritance.heldIn(c), taken) {
			c.channel = nil
			cs.decider.gone(c)
			cs.inheritance.await(c)
			cs.lose(c, "was replaced", false)
		}
	}
}

// lose gives up a controller that never said that it goes, and whose processes may go on
// or not. Unless the session is over, the report says why they count as ended.
func (cs *connections) lose(c *controller, why string, mayGoOn bool) {
	cs.emitGone(c, why)
	if running := len(cs.processes.running(c)); running > 0 && !cs.ending {
		cs.teller.emitRemark(ownName, 0, fmt.Sprintf(
			"the connection to controller %s on %s broke: processes out of reach, which count as ended: %d", c.id, c.hello.GetHost(), running))
	}
	cs.endAll(c, mayGoOn)
}

// endAll ends what a controller has that will not come back.
func (cs *connections) endAll(c *controller, mayGoOn bool) {
	c.awaited, c.over = false, true
	for _, p := range cs.processes.running(c) {
		p.mayGoOn = mayGoOn
		cs.population.end(p, nil)
	}
}

func (cs *connections) emitGone(c *controller, why string) {
	cs.teller.emitController(c.id, attunev1.ControllerState_CONTROLLER_STATE_GONE, c.id+" "+why)
}
