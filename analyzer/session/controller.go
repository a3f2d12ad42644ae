// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Controller is the management channel of one Application Controller.
type Controller interface {
	// Send queues a request without waiting. It returns false if the channel
	// has ended or does not keep up, which ends it.
	Send(*attunev1.ManageResponse) bool
}

// controller is one controller, at however many connections one after the other.
type controller struct {
	id      string
	hello   *attunev1.ControllerHello // nil before the management channel is there
	channel Controller                // nil without a management channel
	awaited bool                      // its channel broke: it may come back
	lostAt  time.Duration             // when that was
	local   map[uint64]uint64         // its handles to the session's
	newest  uint64                    // of its handles
	early   []*attunev1.PointStatus   // of processes that it will tell of: see pointStatus
	status  *attunev1.ControllerStatus
	lost    *attunev1.ControllerStatus // losses as its events told them

	// What is wanted of it, in its own handles.
	points map[uint32]*attunev1.PointWant // by index
	tables map[uint64][]uint32            // beside the signals, by process
	paidAt time.Duration                  // until when wants have used up wantRate
}

// controller returns the connection of that id, made when it is new: the event
// channel may be faster than the management channel.
func (s *Session) controller(id string) *controller {
	c := s.controllers[id]
	if c == nil {
		c = &controller{
			id: id, local: map[uint64]uint64{}, lost: &attunev1.ControllerStatus{},
			points: map[uint32]*attunev1.PointWant{}, tables: map[uint64][]uint32{},
		}
		s.controllers[id] = c
		for _, p := range s.points.byIndex {
			s.wantPoint(c, p)
		}
	}
	return c
}

// ControllerConnected tells of a management channel, a controller's first or one
// after it lost the last.
func (s *Session) ControllerConnected(hello *attunev1.ControllerHello, channel Controller) {
	s.post(func() {
		s.replaceLost(hello)
		c := s.controller(hello.GetControllerId())
		back := c.hello != nil
		c.hello, c.channel, c.awaited = hello, channel, false
		c.paidAt, s.due[c] = 0, true
		s.emitController(c.id, attunev1.ControllerState_CONTROLLER_STATE_CONNECTED, connectedText(c, back))
		s.hurry()
		s.reconcile(c)
	})
}

func connectedText(c *controller, back bool) string {
	if back {
		return fmt.Sprintf("%s on %s is back", c.id, c.hello.GetHost())
	}
	return fmt.Sprintf("%s on %s connected", c.id, c.hello.GetHost())
}

// ControllerGone tells that a management channel has ended: parted if the
// controller wanted that, else broken, and the controller is awaited for the
// time of Config.Grace. Processes of one that does not come are out of reach: it
// undoes their changes when their leases end.
func (s *Session) ControllerGone(id string, channel Controller, parted bool) {
	s.post(func() {
		c := s.controllers[id]
		if c == nil || c.channel != channel {
			return // another one has taken its place
		}
		c.channel = nil
		for _, r := range s.requests {
			s.giveUp(r, c, "the controller is gone")
		}
		s.closeRequests()
		if parted || s.cfg.Grace == 0 {
			s.emitController(id, attunev1.ControllerState_CONTROLLER_STATE_GONE, id+" disconnected")
			if parted {
				s.leave(c)
			} else {
				s.lose(c)
			}
			return
		}
		c.awaited, c.lostAt = true, s.now()
		s.emitController(id, attunev1.ControllerState_CONTROLLER_STATE_AWAITED, id+" is out of reach")
	})
}

// ControllerRefused tells of a controller that cannot serve the session, and why. It
// tries again and again; people are told once of each host.
func (s *Session) ControllerRefused(host, why string) {
	s.post(func() {
		if s.refused[host] {
			return
		}
		s.refused[host] = true
		s.log.Warn("controller refused; nothing is measured or changed there", "host", host, "reason", why)
		s.emitRemark(ownName, 0, fmt.Sprintf("nothing is measured or changed on %s: %s", host, why))
	})
}

// renew renews all leases.
func (s *Session) renew() {
	for _, c := range s.controllers {
		s.send(c, &attunev1.ManageResponse{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{}}})
	}
}

// send sends a request to a controller, and reports whether it was taken.
func (s *Session) send(c *controller, r *attunev1.ManageResponse) bool {
	return c.channel != nil && c.channel.Send(r)
}

// Manage takes a message of a management channel.
func (s *Session) Manage(id string, m *attunev1.ManageRequest) {
	s.post(func() { s.manage(s.controller(id), m) })
}

// manage handles a message of a management channel.
func (s *Session) manage(c *controller, m *attunev1.ManageRequest) {
	switch k := m.GetMessage().(type) {
	case *attunev1.ManageRequest_Result:
		s.result(c, k.Result)
	case *attunev1.ManageRequest_Done:
		if r := s.requests[k.Done.GetRequestId()]; r != nil {
			s.giveUp(r, c, "the controller did not say what became of it")
			s.closeRequests()
		}
	case *attunev1.ManageRequest_Point:
		s.pointStatus(c, k.Point)
	case *attunev1.ManageRequest_Status:
		c.status = k.Status
		s.emitStatus(c)
	}
}

// request is a request of the core that controllers have not wholly answered.
type request struct {
	id   string
	open map[*controller]map[string]bool // change ids without an answer
}

// result hands a controller's answer to the core.
func (s *Session) result(c *controller, r *attunev1.ActionResult) {
	if req := s.requests[r.GetRequestId()]; req != nil {
		delete(req.open[c], r.GetChangeId())
	}
	s.step(core.Result{Result: r, At: s.sinceUnix(r.GetAppliedUnixNano())})
}

// giveUp answers for a controller what it has not answered itself.
func (s *Session) giveUp(r *request, c *controller, reason string) {
	for id := range r.open[c] {
		outcome := attunev1.Outcome_OUTCOME_FAILED
		if p := s.processes[s.changedIn[id]]; p == nil || p.ended {
			outcome = attunev1.Outcome_OUTCOME_GONE
		}
		s.step(core.Result{Result: &attunev1.ActionResult{
			RequestId: r.id, ChangeId: id, Outcome: outcome, Reason: reason,
		}})
	}
	delete(r.open, c)
}

// closeRequests tells the core of requests that all controllers have answered.
func (s *Session) closeRequests() {
	for id, r := range s.requests {
		if len(r.open) == 0 {
			delete(s.requests, id)
			s.step(core.RequestDone{Request: id})
		}
	}
}
