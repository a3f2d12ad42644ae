// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"maps"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// keep begins to look after a change that was kept. What only the decision needed is given
// back.
func (w *watch) keep(h *sdk.Host, proposal string) {
	w.kept = true
	needed := maps.Collect(w.tunlet.asks(true))
	for id := range w.tunlet.asks(false) {
		if _, is := needed[id]; !is {
			h.RemovePoint(w.point(id))
		}
	}
	if len(w.tunlet.details) > 0 {
		h.WantDetails(w.handle(), w.tunlet.needs(true)...)
	}
	w.looks.Begin(h.Now(), proposal)
	w.enter(looking, h.Now())
}

// hear hears what becomes of a change after it was kept, or was before the tunlet was started
// again.
func (w *watch) hear(h *sdk.Host, c sdk.ProposalChange) {
	if w.looks.TakeUp(c, w.handle().Scope()) {
		w.kept = true
		w.enter(done, h.Now())
		h.Want(w.handle(), sdk.AllSamples())
		return
	}
	switch began, ended := w.looks.Hear(h.Now(), c); {
	case began:
		w.kept = true
		h.Want(w.handle(), sdk.AllSamples())
		w.ask(h)
	case ended:
		w.kept = false
		w.giveUp(h)
	}
}

// endLook measures nothing until the next look at what was kept.
func (w *watch) endLook(h *sdk.Host) {
	w.looks.End(h.Now())
	w.giveUp(h)
}
