// SPDX-License-Identifier: Apache-2.0

package session

import (
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// step tells the core what happened and does what it commands. Commands that
// are answered at once (nobody to send to) make further events: they wait until
// the present command list is done, so that the core sees them in order.
func (s *Session) step(ev core.Event) {
	s.events = append(s.events, ev)
	if s.stepping {
		return
	}
	s.stepping = true
	for len(s.events) > 0 {
		ev := s.events[0]
		s.events = s.events[1:]
		s.emitEvent(ev)
		for _, cmd := range s.core.Step(s.now(), ev) {
			s.execute(cmd)
		}
	}
	s.events = nil
	s.stepping = false
}

// execute carries out one command.
func (s *Session) execute(cmd core.Command) {
	s.emitCommand(cmd)
	switch cmd := cmd.(type) {
	case core.Apply:
		s.apply(cmd)
	case core.Undo:
		s.undo(cmd)
	case core.AskEvaluate:
		s.askEvaluate(cmd)
	case core.Notify:
		if t := s.tunlets[cmd.Tunlet]; t != nil {
			t.proposalChanged(cmd.Request)
		}
	}
}

// apply sends changes to the controllers of their processes.
func (s *Session) apply(cmd core.Apply) {
	s.hurry() // to be judged soon
	r := s.newRequest(cmd.Request)
	parts := map[*controller]*attunev1.ApplyChanges{}
	var order []*controller
	for _, ch := range cmd.Changes {
		p := s.processes.byID[ch.GetProcess()] // the core knows none that we do not
		s.processes.noteChange(p, ch.GetId())
		if parts[p.controller] == nil {
			parts[p.controller] = &attunev1.ApplyChanges{}
			order = append(order, p.controller)
		}
		local := proto.CloneOf(ch)
		local.Process = p.handle
		if local.LeaseNanos == 0 {
			local.LeaseNanos = int64(s.cfg.Lease)
		}
		parts[p.controller].Changes = append(parts[p.controller].Changes, local)
		r.expect(p.controller, ch.GetId())
	}
	for _, c := range order {
		s.sendPart(r, c, &attunev1.ManageResponse{RequestId: r.id, Request: &attunev1.ManageResponse_Apply{Apply: parts[c]}})
	}
	s.closeRequests()
}

// undo asks the controllers for original values.
func (s *Session) undo(cmd core.Undo) {
	r := s.newRequest(cmd.Request)
	parts := map[*controller]*attunev1.UndoChanges{}
	var order []*controller
	for _, id := range cmd.Changes {
		p := s.processes.changed(id)
		if p == nil { // ended long ago
			s.step(core.Result{Result: &attunev1.ActionResult{
				RequestId: r.id, ChangeId: id, Outcome: attunev1.Outcome_OUTCOME_GONE,
			}})
			continue
		}
		c := p.controller
		if parts[c] == nil {
			parts[c] = &attunev1.UndoChanges{}
			order = append(order, c)
		}
		parts[c].ChangeIds = append(parts[c].ChangeIds, id)
		r.expect(c, id)
	}
	for _, c := range order {
		s.sendPart(r, c, &attunev1.ManageResponse{RequestId: r.id, Request: &attunev1.ManageResponse_Undo{Undo: parts[c]}})
	}
	s.closeRequests()
}

// newRequest opens a request.
func (s *Session) newRequest(id string) *request {
	r := &request{id: id, open: map[*controller]map[string]bool{}}
	s.requests[id] = r
	return r
}

// expect notes that a controller has to answer for a change.
func (r *request) expect(c *controller, change string) {
	if r.open[c] == nil {
		r.open[c] = map[string]bool{}
	}
	r.open[c][change] = true
}

// sendPart sends one controller's part of a request, or answers for it.
func (s *Session) sendPart(r *request, c *controller, m *attunev1.ManageResponse) {
	if !c.send(m) {
		s.giveUp(r, c, "the controller cannot be reached")
	}
}

// askEvaluate asks a tunlet for its verdict; without a tunlet there is none.
func (s *Session) askEvaluate(cmd core.AskEvaluate) {
	t := s.tunlets[cmd.Tunlet]
	if t == nil {
		s.step(core.Verdict{Tunlet: cmd.Tunlet, Proposal: cmd.Request.GetProposalId()})
		return
	}
	t.evaluate(cmd.Request)
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
		if p := s.processes.changed(id); p == nil || p.ended {
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
