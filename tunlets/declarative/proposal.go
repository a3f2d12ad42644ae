// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"cmp"
	"fmt"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// propose proposes the changes; one whose value is not known leaves all out. Where
// there is nothing to change, the symptom was a false alarm.
func (w *watch) propose(h *sdk.Host, k knowledge) {
	d := w.tunlet.Definition
	var changes []sdk.Change
	for _, c := range d.changes {
		some, reason := c.proposed(k)
		if reason != "" {
			h.Remark(w.handle(), "the symptom is there, but %s: no change proposed", reason)
			w.giveUp(h)
			return
		}
		changes = append(changes, some...)
	}
	if len(changes) == 0 {
		w.rest(h)
		return
	}
	w.tries++
	p := sdk.Proposal{
		ID: fmt.Sprintf("%s-%d-%d", d.description.Name, w.handle(), w.tries), Scope: w.handle().Scope(),
		Changes: changes, Reason: d.reason.render(k), Confidence: d.confidence,
	}
	if gain, ok := d.gain.number(k); ok && gain > 0 {
		p.PredictedGain = gain
	}
	w.proposal = p.ID
	h.Propose(p)
	w.enter(proposed, h.Now())
}

// settled goes on after a verdict: what was kept is looked after, what was not may be tried
// again.
func (w *watch) settled(h *sdk.Host, s sdk.ProposalState) {
	proposal := w.proposal
	w.proposal = ""
	if s == sdk.Kept {
		w.keep(h, proposal)
		return
	}
	if (s == sdk.Undone || s == sdk.Refused) && w.tries < cmp.Or(w.tunlet.description.MaxTries, defaultTries) {
		w.release(h)
		w.until = h.Now().Add(sdk.RetryPause)
		w.enter(quiet, h.Now())
		w.sleep(h)
		return
	}
	w.giveUp(h)
}

// release gives points and details back.
func (w *watch) release(h *sdk.Host) {
	if !w.active() {
		return
	}
	for id := range w.tunlet.asks(false) {
		h.RemovePoint(w.point(id))
	}
	if len(w.tunlet.details) > 0 {
		h.WantDetails(w.handle())
	}
}

// giveUp does nothing more in this process.
func (w *watch) giveUp(h *sdk.Host) {
	w.release(h)
	w.enter(done, h.Now())
	w.sleep(h)
}

// rest waits, longer each time, before the symptom counts again.
func (w *watch) rest(h *sdk.Host) {
	w.release(h)
	w.until = h.Now().Add(w.backoff.Next())
	w.enter(quiet, h.Now())
}
