// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// baseline is how many values of the objective there must be before a
	// proposal: it is judged against them.
	baseline = 5
	// maxTries bounds the proposals in one process.
	maxTries = 3
)

// watch follows one process.
type watch struct {
	handle   sdk.Handle
	window   *sdk.Window
	last     sdk.Sample
	reported int       // values of the objective
	proposal string    // that is open; empty: none
	tries    int       // proposals so far
	until    time.Time // nothing is proposed before
	done     bool      // nothing more to do
}

func newWatch(p sdk.Handle) *watch { return &watch{handle: p, window: sdk.NewWindow(span)} }

// scope is what the tunlet's objective is about: one process.
func (w *watch) scope() string { return fmt.Sprintf("process/%d", w.handle) }

// take takes a sample: it reports the objective while there is something to be
// judged, and proposes when there is the symptom and a baseline.
func (w *watch) take(h *sdk.Host, s sdk.Sample, batch int64) {
	before := w.last
	if w.done || !s.At.After(before.At) {
		return
	}
	w.last = s
	w.window.Add(s)
	latest := w.window.Latest(span)
	l, known := loadOf(latest)
	if !known || latest.Duration() < span*9/10 || !l.symptom() && w.proposal == "" {
		w.reported = 0
		return
	}
	if bytes, ok := sdk.SpanBetween(before, s).Rate(sdk.WrittenBytes); ok {
		h.Objective(w.scope(), bytes)
		w.reported++
	}
	if w.proposal == "" && w.reported >= baseline && !h.Now().Before(w.until) {
		w.propose(h, l, batch)
	}
}

// propose proposes the change with what it was led by.
func (w *watch) propose(h *sdk.Host, l load, batch int64) {
	w.tries++
	w.proposal = fmt.Sprintf("%s-%d-%d", name, w.handle, w.tries)
	h.Propose(sdk.Proposal{
		ID: w.proposal, Scope: w.scope(), Confidence: 0.7, PredictedGain: l.gain(float64(batch)),
		Reason:  fmt.Sprintf("writes %.0f bytes at a time, %.0f times/s", l.bytes/l.calls, l.calls),
		Changes: []sdk.Change{{Knob: knob, Process: w.handle, Action: sdk.SetVariable(object, symbol, 4, sdk.Int(batch))}},
	})
}

// settled hears the verdict.
func (w *watch) settled(h *sdk.Host, s sdk.ProposalState) {
	w.proposal, w.reported = "", 0
	if s == sdk.Undone && w.tries < maxTries {
		w.until = h.Now().Add(sdk.RetryPause)
		return
	}
	w.done = true
	h.Want(w.handle, sdk.NoSamples())
}
