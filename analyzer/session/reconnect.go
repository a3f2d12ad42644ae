// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"slices"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// lapseReason is why a change is not in force any more that nobody undid.
const lapseReason = "its lease ended while the controller was out of reach"

// EventsConnected tells of an event channel, a controller's first or one after
// it lost the last: what it does not have any more has ended meanwhile.
func (s *Session) EventsConnected(hello *attunev1.StreamHello) {
	s.post(func() {
		c := s.controllers.get(hello.GetControllerId())
		for _, p := range s.processes.running(c) {
			if !slices.Contains(hello.GetProcesses(), p.handle) {
				s.endProcess(p, nil)
			}
		}
	})
}

// leave ends what a controller has that will not come back.
func (s *Session) leave(c *controller) {
	c.awaited = false
	for _, p := range s.processes.running(c) {
		s.endProcess(p, nil)
	}
}

// lose is leave for a controller that never said that it goes. Unless the session
// is over, the report says why its processes count as ended.
func (s *Session) lose(c *controller) {
	if running := len(s.processes.running(c)); running > 0 && !s.finishing {
		s.emitRemark(ownName, 0, fmt.Sprintf(
			"the connection to controller %s on %s broke: processes out of reach, which count as ended: %d", c.id, c.hello.GetHost(), running))
	}
	s.leave(c)
}

// await gives up controllers that did not come back in time.
func (s *Session) await() {
	for _, c := range s.controllers.byID {
		if c.awaited && s.now()-c.lostAt >= s.cfg.Grace {
			s.emitController(c.id, attunev1.ControllerState_CONTROLLER_STATE_GONE, c.id+" did not come back")
			s.lose(c)
		}
	}
}

// replaceLost gives up an awaited controller whose node has another one by now:
// it has died, and a node has one for a session.
func (s *Session) replaceLost(hello *attunev1.ControllerHello) {
	for _, c := range s.controllers.byID {
		if c.awaited && c.id != hello.GetControllerId() && c.hello.GetHost() == hello.GetHost() {
			s.emitController(c.id, attunev1.ControllerState_CONTROLLER_STATE_GONE, c.id+" was replaced")
			s.lose(c)
		}
	}
}

// Dismiss tells the controllers that the session is over: they give back all but
// the changes to be kept and leave. It returns when they have left, or with
// ctx's error.
func (s *Session) Dismiss(ctx context.Context, keep []string) error {
	return s.until(ctx, "dismiss the controllers", func() {
		for _, c := range s.controllers.byID {
			c.send(&attunev1.ManageResponse{RequestId: "end", Request: &attunev1.ManageResponse_End{End: &attunev1.EndSession{Keep: keep}}})
		}
	}, func() bool {
		for _, c := range s.controllers.byID {
			if c.channel != nil {
				return false
			}
		}
		return true
	})
}

// reconcile compares what a controller has in force with what is to be: what is
// missing has lapsed, the leases of what stays are renewed at once, and what
// nobody wants is undone.
func (s *Session) reconcile(c *controller) {
	inForce := c.hello.GetInForce()
	lapsed := slices.DeleteFunc(s.heldIn(c), func(id string) bool { return slices.Contains(inForce, id) })
	if len(lapsed) > 0 {
		s.step(core.Lapsed{Changes: lapsed, Reason: lapseReason})
	}
	held := s.heldIn(c)
	var stay, unwanted []string
	for _, id := range inForce {
		if slices.Contains(held, id) || s.inherited[id] != nil {
			stay = append(stay, id)
		} else {
			unwanted = append(unwanted, id)
		}
	}
	if len(stay) > 0 {
		c.send(&attunev1.ManageResponse{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{Changes: stay}}})
	}
	if len(unwanted) > 0 {
		s.emitController(c.id, attunev1.ControllerState_CONTROLLER_STATE_UNSPECIFIED,
			fmt.Sprintf("%s gives back %d changes of before", c.id, len(unwanted)))
		c.send(&attunev1.ManageResponse{RequestId: "unwanted", Request: &attunev1.ManageResponse_Undo{
			Undo: &attunev1.UndoChanges{ChangeIds: unwanted},
		}})
	}
	s.inherit(c)
}

// heldIn returns the changes that are to stay in a controller's processes.
func (s *Session) heldIn(c *controller) (ids []string) {
	for _, h := range s.core.Held() {
		if p := s.processes.byID[h.Process]; p != nil && p.controller == c {
			ids = append(ids, h.ID)
		}
	}
	return ids
}

// inherit takes over what an earlier session kept in a controller's processes,
// as soon as both its hello and the process are there.
func (s *Session) inherit(c *controller) {
	if len(s.inherited) == 0 {
		return
	}
	for _, id := range c.hello.GetInForce() {
		k := s.inherited[id]
		if k == nil {
			continue
		}
		running := s.processes.running(c)
		at := slices.IndexFunc(running, func(p *process) bool { return p.pid == int(k.GetPid()) })
		if at < 0 {
			continue
		}
		p := running[at]
		delete(s.inherited, id)
		s.processes.noteChange(p, id)
		s.step(core.Adopt{Held: core.Held{
			ID: id, Process: p.id, Knob: k.GetKnob(), Tunlet: k.GetTunlet(), Action: k.GetAction(), Kept: true, Gain: k.GetGain(),
		}})
	}
}
