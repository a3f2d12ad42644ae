// SPDX-License-Identifier: Apache-2.0

package perprocess

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// baseline is how many values of the objective there must be before a proposal: it is judged
// against them.
const baseline = 5

// watch follows one process.
type watch struct {
	tunlet   *tunlet
	process  sdk.Process
	window   *sdk.Window
	last     sdk.Sample // zero: it sleeps
	values   int        // of the objective since it woke or a proposal was settled
	proposal string     // that is open; empty: none
	tries    uint32
	until    time.Time // nothing is proposed before
	done     bool      // nothing is proposed any more
	looks    Looks     // at what was kept
}

func newWatch(t *tunlet, p sdk.Process) *watch {
	return &watch{tunlet: t, process: p, window: sdk.NewWindow(t.lasting)}
}

// sleep wants samples from when the process may have the problem on.
func (w *watch) sleep(h *sdk.Host) {
	w.window.Reset()
	w.last, w.values = sdk.Sample{}, 0
	if w.done {
		h.Want(w.process.Handle, w.looks.Until(h.Now(), sdk.NoSamples()))
		return
	}
	h.Want(w.process.Handle, sdk.Awaited(w.tunlet.description.Wake, w.process))
}

// take takes a sample: it reports the objective, and proposes when there are symptom and
// baseline.
func (w *watch) take(h *sdk.Host, s sdk.Sample) {
	before := w.last
	w.looks.Due(h.Now())
	if w.done && !w.looks.Open() || !s.At.After(before.At) {
		return
	}
	w.last = s
	w.window.Add(s)
	if before.At.IsZero() {
		return
	}
	problem := w.tunlet.problem
	if value, known := problem.Progress(sdk.SpanBetween(before, s)); known {
		h.Objective(w.process.Handle.Scope(), value)
		w.values++
		w.looks.Reported()
	}
	if w.done {
		w.rest(h)
		return
	}
	recent := w.window.Latest(w.tunlet.lasting)
	if w.proposal != "" || recent.Duration() < w.tunlet.lasting*9/10 {
		return
	}
	if !problem.Symptom(recent) {
		w.sleep(h)
		return
	}
	if w.values >= baseline && !h.Now().Before(w.until) {
		w.propose(h, recent)
	}
}

func (w *watch) propose(h *sdk.Host, recent sdk.Span) {
	p, sensible := w.tunlet.problem.Propose(w.process, recent)
	if !sensible {
		return
	}
	w.tries++
	w.proposal = fmt.Sprintf("%s-%d-%d", w.tunlet.description.Name, w.process.Handle, w.tries)
	p.ID, p.Scope = w.proposal, w.process.Handle.Scope()
	for i := range p.Changes {
		if p.Changes[i].Process == 0 {
			p.Changes[i].Process = w.process.Handle
		}
	}
	h.Propose(p)
}

// rest sleeps until the next look if the present one is over.
func (w *watch) rest(h *sdk.Host) {
	if w.looks.Over(h.Now()) {
		w.looks.End(h.Now())
		w.sleep(h)
	}
}

// heard follows the proposal to its end, and what was kept after that.
func (w *watch) heard(h *sdk.Host, c sdk.ProposalChange) {
	if w.proposal == c.Proposal && c.State.Final() {
		w.settled(h, c.State)
		return
	}
	if w.looks.TakeUp(c, w.process.Handle.Scope()) {
		w.done = true
		h.Want(w.process.Handle, sdk.AllSamples())
		return
	}
	switch began, ended := w.looks.Hear(h.Now(), c); {
	case began:
		h.Want(w.process.Handle, sdk.AllSamples())
	case ended:
		w.sleep(h)
	}
}

// settled hears how the proposal has ended.
func (w *watch) settled(h *sdk.Host, s sdk.ProposalState) {
	proposal := w.proposal
	w.proposal, w.values, w.until = "", 0, h.Now().Add(sdk.RetryPause)
	if s == sdk.Kept {
		w.done = true
		w.looks.Begin(h.Now(), proposal)
		return
	}
	again := s == sdk.Undone || s == sdk.Refused || s == sdk.Failed
	if !again || w.tries >= w.tunlet.description.MaxTries {
		w.done = true
		w.sleep(h)
	}
}
