// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// propose proposes the cures of the connections that suffer.
func (w *watch) propose(h *sdk.Host, suffering []sufferer) {
	gain := w.gain(suffering)
	first, total := suffering[0], len(suffering)
	suffering = suffering[:min(total, maxPlaces)]
	w.sequence++
	p := sdk.Proposal{
		ID: fmt.Sprintf("%s-%d-%d", w.problem.Name, w.handle, w.sequence), Scope: w.handle.Scope(),
		PredictedGain: gain, Confidence: w.problem.Confidence,
		Reason: fmt.Sprintf("connection %s to %s %s", first.Latest.Local, first.Latest.Peer, first.Reason),
	}
	if total > 1 {
		p.Reason += fmt.Sprintf("; so do %d more", total-1)
	}
	w.changed = map[uint64]int{}
	if len(w.taken) >= maxTaken {
		clear(w.taken)
	}
	for _, s := range suffering {
		fd := s.Latest.FD
		w.changed[s.Latest.Inode] = fd
		w.taken[socket{w.host, s.Latest.Inode}] = true
		p.Changes = append(p.Changes, sdk.Change{
			Knob: w.place(s.Knob, fd), Process: w.handle,
			Action: sdk.SystemSettingOn(s.Knob, int32(fd), s.Value),
		})
	}
	w.proposal = p.ID
	h.Propose(p)
	w.enter(proposed, h.Now())
}

// place names the knob of a descriptor. The program may have used the number
// before, for a connection that was changed as well: the next one is another.
func (w *watch) place(knob string, fd int) string {
	if n := w.places[fd]; n > 0 {
		return fmt.Sprintf("%s@%d#%d", knob, fd, n+1)
	}
	return fmt.Sprintf("%s@%d", knob, fd)
}

// gain is that of the process: all connections together, of which some suffer.
func (w *watch) gain(suffering []sufferer) float64 {
	var before, after float64
	for _, f := range w.inOrder() {
		before += f.Rate()
	}
	after = before
	for _, s := range suffering {
		after += s.Rate() * (s.Gain - 1)
	}
	if before <= 0 {
		return suffering[0].Gain
	}
	return after / before
}

// settled goes on after a verdict.
func (w *watch) settled(h *sdk.Host, s sdk.ProposalState) {
	proposal := w.proposal
	w.proposal = ""
	if s != sdk.Kept {
		w.giveBack()
	}
	switch {
	case s == sdk.Kept:
		w.count()
		w.backoff.Reset()
		w.looks.Begin(h.Now(), proposal)
		w.enter(looking, h.Now()) // there may be further connections
		return
	case s != sdk.Undone && s != sdk.Refused && s != sdk.Failed:
		w.failures = maxTries
	default:
		w.failures++
	}
	if w.failures >= maxTries {
		w.enter(done, h.Now())
	} else {
		w.until = h.Now().Add(sdk.RetryPause)
		w.enter(asleep, h.Now())
	}
	w.sleep(h)
}

// hear hears what becomes of a change after it was kept.
func (w *watch) hear(h *sdk.Host, c sdk.ProposalChange) {
	if w.looks.TakeUp(c, w.handle.Scope()) {
		w.takeUp(h, c.Earlier)
		return
	}
	if began, _ := w.looks.Hear(h.Now(), c); began && (w.state == asleep || w.state == done) {
		h.Want(w.handle, sdk.AllSamples())
		w.begin(h)
	}
}

// takeUp goes on where the tunlet was when it had kept a proposal. Which connections those were
// that are changed the descriptors tell.
func (w *watch) takeUp(h *sdk.Host, p *sdk.Proposal) {
	w.sequence = max(w.sequence, p.Number())
	for _, c := range p.Changes {
		if fd, n, ok := placeOf(c.Knob); ok {
			w.places[fd] = max(w.places[fd], n)
			w.cured[fd] = true
		}
	}
	h.Want(w.handle, sdk.AllSamples())
}

// placeOf is the descriptor in the name of a knob, and the how many-th connection under it
// was changed, see place; false: it is no such name.
func placeOf(knob string) (fd, n int, ok bool) {
	_, place, _ := strings.Cut(knob, "@")
	number, times, again := strings.Cut(place, "#")
	fd, err := strconv.Atoi(number)
	if n = 1; again && err == nil {
		n, err = strconv.Atoi(times)
	}
	return fd, n, err == nil
}

// count notes under which descriptors connections stay changed: one that is closed since then
// holds the name of its knob all the same.
func (w *watch) count() {
	for _, fd := range w.changed {
		w.places[fd]++
	}
}

// giveBack lets go of the connections of a proposal that is over.
func (w *watch) giveBack() {
	for inode := range w.changed {
		delete(w.taken, socket{w.host, inode})
	}
}
