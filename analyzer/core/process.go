// SPDX-License-Identifier: Apache-2.0

package core

import (
	"maps"
	"slices"
	"time"

	"github.com/attune-hpc/attune/analyzer/core/trial"
)

// maxAreas is how many areas are remembered before those are forgotten that do not
// matter any more.
const maxAreas = 1024

// process is what the core knows of a process that runs.
type process struct {
	executable string
	program    string        // see ProcessStarted
	disturbed  time.Duration // last change to it
}

// processes are those that run. They know when changes have disturbed them, and the
// areas whose objectives are about them: samples from before that are of no baseline.
type processes struct {
	running   map[uint64]*process
	disturbed map[area]time.Duration // last change that it judges
	window    time.Duration          // for which a baseline goes back
	shared    bool                   // one objective judges all: there is one area
}

func newProcesses(window time.Duration) *processes {
	return &processes{running: map[uint64]*process{}, disturbed: map[area]time.Duration{}, window: window}
}

// start makes a process known.
func (all *processes) start(ev ProcessStarted) {
	if p := all.running[ev.Process]; p != nil {
		p.executable, p.program = ev.Executable, ev.Program
		return
	}
	all.running[ev.Process] = &process{executable: ev.Executable, program: ev.Program}
}

// end forgets a process, and reports whether it was known.
func (all *processes) end(handle uint64) bool {
	_, known := all.running[handle]
	delete(all.running, handle)
	return known
}

// runs reports whether a process is known, and has not ended.
func (all *processes) runs(handle uint64) bool { return all.running[handle] != nil }

// executable returns the path of a process that runs; empty: it does not.
func (all *processes) executable(handle uint64) string {
	if p := all.running[handle]; p != nil {
		return p.executable
	}
	return ""
}

// program returns what a process that runs has siblings by; empty: it has none.
func (all *processes) program(handle uint64) string {
	if p := all.running[handle]; p != nil {
		return p.program
	}
	return ""
}

// allEnded reports whether no process of p runs any more.
func (all *processes) allEnded(p *proposal) bool {
	return !slices.ContainsFunc(p.changes, func(ch *change) bool { return all.runs(ch.spec.GetProcess()) })
}

// disturb notes that a process is being changed, and what an objective is about.
func (all *processes) disturb(now time.Duration, a area, handle uint64) {
	all.disturbArea(now, a)
	if p := all.running[handle]; p != nil {
		p.disturbed = now
	}
}

// disturbArea notes that what an objective is about is being changed, and forgets
// areas whose last change is too long ago for any baseline: a job may have a
// hundred thousand, one per process.
func (all *processes) disturbArea(now time.Duration, a area) {
	if len(all.disturbed) >= maxAreas {
		maps.DeleteFunc(all.disturbed, func(_ area, at time.Duration) bool {
			return now-at > all.window+trial.SettleTime
		})
	}
	all.disturbed[all.judged(a)] = now
}

// judged returns the area of the objective that judges what a tunlet's would.
func (all *processes) judged(a area) area {
	if all.shared {
		return area{}
	}
	return a
}

// quiet returns the time from which on no change has disturbed p's processes
// or its objective, which may be about more processes than p changes.
func (all *processes) quiet(p *proposal) time.Duration {
	var from time.Duration
	if at := all.disturbed[all.judged(p.area())]; at > 0 {
		from = at + trial.SettleTime
	}
	for _, ch := range p.changes {
		if pr := all.running[ch.spec.GetProcess()]; pr != nil && pr.disturbed > 0 {
			from = max(from, pr.disturbed+trial.SettleTime)
		}
	}
	return from
}
