// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// lapseReason is why a change is not in force any more that nobody undid.
	lapseReason = "its lease ended while the controller was out of reach"
	// endReason is it where the controller says so itself.
	endReason = "its lease ended before it was renewed"
)

// inheritance compares what controllers have in force with what is to be, and takes
// over what an earlier session of the same execution kept. It belongs to the loop.
type inheritance struct {
	teller    *teller
	processes *processes
	decider   *decider
	awaited   map[string]*attunev1.KeptChange // whose process is not there yet, by id
	lease     time.Duration                   // of what is proven good
}

// proven lists the changes that are proven good and not on trial, by controller.
func (i *inheritance) proven() map[*controller][]string {
	all := make(map[*controller][]string)
	for _, h := range i.decider.core.Held() {
		if p := i.processes.byID[h.Process]; h.Kept && p != nil {
			all[p.controller] = append(all[p.controller], h.ID)
		}
	}
	return all
}

// await awaits the changes of a controller that are proven good: the one that comes in
// its place may have taken them over.
func (i *inheritance) await(c *controller) {
	for _, h := range i.decider.core.Held() {
		if p := i.processes.byID[h.Process]; h.Kept && p != nil && p.controller == c && !p.ended {
			i.awaited[h.ID] = &attunev1.KeptChange{
				Id: h.ID, Host: c.hello.GetHost(), Pid: int32(p.pid), Knob: h.Knob, Tunlet: h.Tunlet, Action: h.Action, Gain: h.Gain,
			}
		}
	}
}

// takenOver takes a controller's word for changes that it has taken over from one before.
func (i *inheritance) takenOver(c *controller, ids []string) {
	if c.hello == nil {
		return // it says hello first
	}
	c.hello.InForce = append(c.hello.InForce, ids...)
	i.answerFor(c, ids)
	i.takeOver(c)
}

// reconcile compares what a controller that has connected has in force with what is
// to be: what is missing has lapsed, the leases of what stays are renewed at once, and
// what nobody wants is undone.
func (i *inheritance) reconcile(c *controller) {
	inForce := c.hello.GetInForce()
	lapsed := slices.DeleteFunc(i.heldIn(c), func(id string) bool { return slices.Contains(inForce, id) })
	if len(lapsed) > 0 {
		i.decider.step(core.Lapsed{Changes: lapsed, Reason: lapseReason})
	}
	i.answerFor(c, inForce)
	i.takeOver(c)
}

// ended takes a controller's word, which nobody asked for, that a change is not in force any
// more: somebody else has changed something of it, or its lease has ended, since Attune stood
// still for a while.
func (i *inheritance) ended(c *controller, r *attunev1.ActionResult) {
	delete(i.awaited, r.GetChangeId())
	if r.GetOutcome() == attunev1.Outcome_OUTCOME_OVERRIDDEN {
		i.decider.result(c, r)
		return
	}
	reason := endReason
	if r.GetOutcome() == attunev1.Outcome_OUTCOME_FAILED {
		reason += ", and could not wholly be undone: " + r.GetReason()
	}
	i.decider.step(core.Lapsed{Changes: []string{r.GetChangeId()}, Reason: reason})
}

// answerFor says of changes that a controller has in force which of them stay, and has it
// give back the others.
func (i *inheritance) answerFor(c *controller, inForce []string) {
	held := i.heldIn(c)
	var stay, unwanted []string
	for _, id := range inForce {
		if slices.Contains(held, id) || i.awaited[id] != nil {
			stay = append(stay, id)
		} else {
			unwanted = append(unwanted, id)
		}
	}
	if len(stay) > 0 {
		c.send(&attunev1.ManageResponse{Request: &attunev1.ManageResponse_Renew{Renew: &attunev1.RenewLease{Changes: stay}}})
	}
	i.giveBack(c, unwanted)
}

// giveBack has a controller give back changes that nobody wants.
func (i *inheritance) giveBack(c *controller, unwanted []string) {
	if len(unwanted) == 0 {
		return
	}
	i.teller.emitController(c.id, attunev1.ControllerState_CONTROLLER_STATE_UNSPECIFIED,
		fmt.Sprintf("%s gives back %d changes of before", c.id, len(unwanted)))
	c.send(&attunev1.ManageResponse{RequestId: "unwanted", Request: &attunev1.ManageResponse_Undo{
		Undo: &attunev1.UndoChanges{ChangeIds: unwanted},
	}})
}

// heldIn returns the changes that are to stay in a controller's processes.
func (i *inheritance) heldIn(c *controller) (ids []string) {
	for _, h := range i.decider.core.Held() {
		if p := i.processes.byID[h.Process]; p != nil && p.controller == c {
			ids = append(ids, h.ID)
		}
	}
	return ids
}

// takeOver takes over what an earlier session kept in a controller's processes, as
// soon as both its hello and the process are there.
func (i *inheritance) takeOver(c *controller) {
	if len(i.awaited) == 0 {
		return
	}
	for _, id := range c.hello.GetInForce() {
		k := i.awaited[id]
		if k == nil {
			continue
		}
		running := i.processes.running(c)
		at := slices.IndexFunc(running, func(p *process) bool { return p.pid == int(k.GetPid()) })
		if at < 0 {
			continue
		}
		p := running[at]
		delete(i.awaited, id)
		i.processes.noteChange(p, id)
		i.decider.step(core.Adopt{Held: core.Held{
			ID: id, Process: p.id, Knob: k.GetKnob(), Tunlet: k.GetTunlet(), Action: k.GetAction(), Kept: true, Gain: k.GetGain(),
		}})
		if !slices.Contains(i.heldIn(c), id) {
			i.giveBack(c, []string{id}) // somebody else changes that knob by now
		}
	}
}

// kept lists the changes that are to stay when the session ends: its own, and those
// whose processes it awaits.
func (i *inheritance) kept() (ids []string) {
	for id := range i.awaited {
		ids = append(ids, id)
	}
	ids = append(ids, i.decider.core.Kept()...)
	slices.Sort(ids)
	return ids
}
