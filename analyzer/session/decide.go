// SPDX-License-Identifier: Apache-2.0

package session

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// decider has the core decide, carries out what it commands, and sees to it that each
// request gets all its answers. It belongs to the loop.
type decider struct {
	clock     *clock
	teller    *teller
	core      *core.Core
	processes *processes
	lease     time.Duration
	hurry     func()
	running   func(tunlet string) *tunlet // nil: it does not run

	events    []core.Event // to be stepped
	stepping  bool
	requests  map[string]*request
	keep      bool // the end leaves what was kept
	finished  bool // nothing is decided any more
	forgotten int  // proposals of which the sinks know that they are forgotten
}

// request is a request of the core that controllers have not wholly answered.
type request struct {
	id    string
	open  map[*controller]map[string]bool // change ids without an answer
	asked []*controller                   // in the order in which it concerned them first
}

// expect notes that a controller has to answer for a change.
func (r *request) expect(c *controller, change string) {
	if r.open[c] == nil {
		r.open[c] = map[string]bool{}
		r.asked = append(r.asked, c)
	}
	r.open[c][change] = true
}

// busy says whether something is about to be decided by samples.
func (d *decider) busy() bool { return d.core.Busy() || d.core.Deciding() }

// step tells the core what happened and does what it commands. Commands that
// are answered at once (nobody to send to) make further events: they wait until
// the present command list is done, so that the core sees them in order.
func (d *decider) step(ev core.Event) {
	d.events = append(d.events, ev)
	if d.stepping {
		return
	}
	d.stepping = true
	for len(d.events) > 0 {
		ev := d.events[0]
		d.events = d.events[1:]
		d.teller.emitEvent(ev)
		for _, cmd := range d.core.Step(d.clock.now(), ev) {
			d.execute(cmd)
		}
	}
	d.events = nil
	d.stepping = false
}

// finish has the core undo what is in force, and decide nothing from then on.
func (d *decider) finish() {
	if !d.finished {
		d.finished = true
		d.step(core.Finish{Keep: d.keep})
	}
}

// execute carries out one command.
func (d *decider) execute(cmd core.Command) {
	d.teller.emitCommand(cmd)
	switch cmd := cmd.(type) {
	case core.Apply:
		d.apply(cmd)
	case core.Undo:
		d.undo(cmd)
	case core.AskEvaluate:
		if t := d.running(cmd.Tunlet); t != nil {
			t.evaluate(cmd.Request)
		} else { // without a tunlet there is no verdict
			d.step(core.Verdict{Tunlet: cmd.Tunlet, Proposal: cmd.Request.GetProposalId()})
		}
	case core.Notify:
		if t := d.running(cmd.Tunlet); t != nil {
			t.proposalChanged(cmd.Request)
		}
	}
}

// apply sends changes to the controllers of their processes.
func (d *decider) apply(cmd core.Apply) {
	d.hurry() // to be judged soon
	r := d.newRequest(cmd.Request)
	parts := map[*controller][]*attunev1.Change{}
	for _, ch := range cmd.Changes {
		p := d.processes.byID[ch.GetProcess()] // the core knows none that we do not
		d.processes.noteChange(p, ch.GetId())
		local := proto.CloneOf(ch)
		local.Process = p.handle
		if local.LeaseNanos == 0 {
			local.LeaseNanos = int64(d.lease)
		}
		parts[p.controller] = append(parts[p.controller], local)
		r.expect(p.controller, ch.GetId())
	}
	for _, c := range r.asked {
		d.send(r, c, &attunev1.ManageResponse{RequestId: r.id, Request: &attunev1.ManageResponse_Apply{Apply: &attunev1.ApplyChanges{Changes: parts[c]}}})
	}
	d.closeAnswered()
}

// undo asks the controllers for original values.
func (d *decider) undo(cmd core.Undo) {
	r := d.newRequest(cmd.Request)
	parts := map[*controller][]string{}
	for _, id := range cmd.Changes {
		p := d.processes.changed(id)
		if p == nil { // ended long ago
			d.step(core.Result{Result: &attunev1.ActionResult{
				RequestId: r.id, ChangeId: id, Outcome: attunev1.Outcome_OUTCOME_GONE,
			}})
			continue
		}
		parts[p.controller] = append(parts[p.controller], id)
		r.expect(p.controller, id)
	}
	for _, c := range r.asked {
		d.send(r, c, &attunev1.ManageResponse{RequestId: r.id, Request: &attunev1.ManageResponse_Undo{Undo: &attunev1.UndoChanges{ChangeIds: parts[c]}}})
	}
	d.closeAnswered()
}

// newRequest opens a request.
func (d *decider) newRequest(id string) *request {
	r := &request{id: id, open: map[*controller]map[string]bool{}}
	d.requests[id] = r
	return r
}

// send sends one controller's part of a request, or answers for it.
func (d *decider) send(r *request, c *controller, m *attunev1.ManageResponse) {
	if !c.send(m) {
		d.giveUp(r, c, "the controller cannot be reached")
	}
}

// result hands a controller's answer to the core.
func (d *decider) result(c *controller, r *attunev1.ActionResult) {
	if req := d.requests[r.GetRequestId()]; req != nil {
		delete(req.open[c], r.GetChangeId())
	}
	d.step(core.Result{Result: r, At: d.clock.sinceUnix(r.GetAppliedUnixNano(), c.shift)})
}

// done notes that a controller says no more about a request.
func (d *decider) done(c *controller, id string) {
	if r := d.requests[id]; r != nil {
		d.giveUp(r, c, "the controller did not say what became of it")
		d.closeAnswered()
	}
}

// gone answers all requests for a controller that cannot any more.
func (d *decider) gone(c *controller) {
	for _, r := range d.requests {
		d.giveUp(r, c, "the controller is gone")
	}
	d.closeAnswered()
}

// giveUp answers for a controller what it has not answered itself.
func (d *decider) giveUp(r *request, c *controller, reason string) {
	for id := range r.open[c] {
		outcome := attunev1.Outcome_OUTCOME_FAILED
		if p := d.processes.changed(id); p == nil || p.ended {
			outcome = attunev1.Outcome_OUTCOME_GONE
		}
		d.step(core.Result{Result: &attunev1.ActionResult{
			RequestId: r.id, ChangeId: id, Outcome: outcome, Reason: reason,
		}})
	}
	delete(r.open, c)
}

// closeAnswered tells the core of requests that all controllers have answered.
func (d *decider) closeAnswered() {
	for id, r := range d.requests {
		if len(r.open) == 0 {
			delete(d.requests, id)
			d.step(core.RequestDone{Request: id})
		}
	}
}

// emitProposals tells how proposals stand, where that has changed since it did last.
func (d *decider) emitProposals() {
	changed, forgotten := d.core.Changed()
	for _, p := range changed {
		d.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Proposal{Proposal: p}})
	}
	if n := d.core.Forgotten(); n != d.forgotten {
		d.forgotten = n
		d.teller.emit(&attunev1.RecordingFrame{What: &attunev1.RecordingFrame_Omission{
			Omission: &attunev1.RecordedOmission{Proposals: forgotten, ProposalsOmitted: uint64(n)},
		}})
	}
}
