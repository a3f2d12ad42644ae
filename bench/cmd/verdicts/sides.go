// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
)

// side is a stretch of time in which a change was in force, or was not.
type side struct {
	on       bool
	from, to time.Time
}

// watcher watches one proposal in the timeline of a session.
type watcher struct {
	tunlet, proposal string

	// sides are when it was in force, and when it was not, as far as no other one was being
	// tried, and with the same others in force as when it was first tried.
	sides []side
	// besides says that there were such others.
	besides bool

	now         *side // nil: nothing is compared
	begun, over bool  // it was tried; what is in force besides is another than then
	others      map[[2]string]bool
	kept        map[[2]string]bool // of others
}

// watch returns what a timeline says of a proposal.
func watch(timeline []report.Entry, tunlet, proposal string) watcher {
	w := watcher{tunlet: tunlet, proposal: proposal, others: map[[2]string]bool{}, kept: map[[2]string]bool{}}
	for _, e := range timeline {
		w.hear(e)
	}
	return w
}

func (w *watcher) hear(e report.Entry) {
	switch {
	case e.Kind == "session_started":
		w.begin(false, e.Time)
	case e.Kind == "session_ended":
		w.end(e.Time)
	case e.Tunlet == w.tunlet && e.Proposal == w.proposal:
		w.hearOwn(e)
	case e.Proposal != "":
		w.hearOther(e)
	}
}

func (w *watcher) end(at time.Time) {
	if w.now != nil && w.now.from.Before(at) {
		w.sides = append(w.sides, side{w.now.on, w.now.from, at})
	}
	w.now = nil
}

// begin begins another side, unless something else is being tried.
func (w *watcher) begin(on bool, at time.Time) {
	w.end(at)
	if len(w.others) == 0 && !w.over {
		w.now = &side{on: on, from: at}
	}
}

func (w *watcher) hearOwn(e report.Entry) {
	switch e.Kind {
	case "proposed": // perhaps again
		if w.begun {
			w.sides, w.now, w.begun, w.over = nil, nil, false, false
			w.begin(false, e.Time)
		}
	case "applying", "turning", "undoing", "failed":
		if !w.begun {
			w.begun, w.besides = true, len(w.kept) > 0
		}
		w.end(e.Time)
	case "applied", "turned", "undone":
		w.begin(inForce(e), e.Time)
	case "kept":
		if w.now == nil {
			w.begin(inForce(e), e.Time)
		}
	}
}

// hearOther hears of another proposal: what was before its verdict is no comparison to what is
// after it.
func (w *watcher) hearOther(e report.Entry) {
	id := [2]string{e.Tunlet, e.Proposal}
	switch e.Kind {
	case "applying", "turning", "undoing":
		w.end(e.Time)
		w.over = w.over || w.begun
		w.others[id] = true
	case "kept", "undone", "failed", "ended":
		delete(w.others, id)
		delete(w.kept, id)
		if e.Kind == "kept" {
			w.kept[id] = true
		}
		if !w.over {
			w.sides = nil
		}
		if !w.begun {
			w.begin(false, e.Time)
		}
	}
}

// inForce says whether something of what an entry is about was in force when it was written.
func inForce(e report.Entry) bool {
	return slices.ContainsFunc(e.Changes, func(c report.EntryChange) bool { return c.Outcome == "applied" })
}
