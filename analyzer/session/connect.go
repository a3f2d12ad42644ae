// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// ControllerConnected tells of a management channel, a controller's first or one
// after it lost the last.
func (s *Session) ControllerConnected(hello *attunev1.ControllerHello, channel Controller) {
	s.post(func() {
		s.replaceLost(hello)
		c := s.controllers.get(hello.GetControllerId())
		back := c.hello != nil
		c.hello, c.channel, c.awaited = hello, channel, false
		s.wants.connected(c)
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
		c := s.controllers.byID[id]
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
	for _, c := range s.controllers.byID {
		c.send(&attunev1.ManageResponse{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{}}})
	}
}

// Manage takes a message of a management channel.
func (s *Session) Manage(id string, m *attunev1.ManageRequest) {
	s.post(func() { s.manage(s.controllers.get(id), m) })
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
		s.points.setStatus(c, k.Point)
	case *attunev1.ManageRequest_Status:
		c.status = k.Status
		s.emitStatus(c.id, c.account())
	}
}
