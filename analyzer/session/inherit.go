// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// lapseReason is why a change is not in force any more that nobody undid.
const lapseReason = "its lease ended while the controller was out of reach"

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

// reconcile compares what a controller that has connected has in force with what is
// to be: what is missing has lapsed, the leases of what stays are renewed at once, and
// what nobody wants is undone.
func (i *inheritance) reconcile(c *controller) {
	inForce := c.hello.GetInForce()
	lapsed := slices.DeleteFunc(i.heldIn(c), func(id string) bool { return slices.Contains(inForce, id) })
	if len(lapsed) > 0 {
		i.decider.step(core.Lapsed{Changes: lapsed, Reason: lapseReason})
	}
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
	if len(unwanted) > 0 {
		i.teller.emitController(c.id, attunev1.ControllerState_CONTROLLER_STATE_UNSPECIFIED,
			fmt.Sprintf("%s gives back %d changes of before", c.id, len(unwanted)))
		c.send(&attunev1.ManageResponse{RequestId: "unwanted", Request: &attunev1.ManageResponse_Undo{
			Undo: &attunev1.UndoChanges{ChangeIds: unwanted},
		}})
	}
	i.takeOver(c)
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
	}
}

// kept lists the changes that are to stay when the session ends: its own, and those
// whose processes it awaits.
func (i *inheritance) kept() (ids []string) {
	for id := range i.awaited {
		ids = append(ids, id)
	}
	for _, h := range i.decider.core.Held() {
		if h.Kept {
			ids = append(ids, h.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
