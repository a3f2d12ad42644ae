// SPDX-License-Identifier: Apache-2.0

package searching

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/objects"
	"github.com/attune-hpc/attune/tunlets/kit/trials"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "search"

// knob is what is changed.
const knob = "program.variable"

const (
	// maxMembers bounds the processes that are followed.
	maxMembers = 4096
	// minGain is the least gain worth keeping.
	minGain = 0.05
	// computing is the CPU time, ns/s, from which on a process is worth a look.
	computing = 0.05e9
)

// Tunlet searches in one program at a time. Made by New.
type Tunlet struct {
	program program
	tunes   bool // proposals are made: a search cannot recommend what it has not tried
	members map[sdk.Handle]*member
	lead    sdk.Handle     // the process whose calls count; 0: not known yet
	run     *trials.Search // the search in its program; nil: none yet
	count   int            // proposals so far
	told    bool           // why calls cannot be counted
}

// member is a process that may be part of the program.
type member struct {
	watched bool // the measure point is asked for
	calls   bool // the function was called: it has the variable that counts
	done    bool // it has the result of a search
}

// New makes the tunlet.
func New() sdk.Tunlet { return &Tunlet{members: map[sdk.Handle]*member{}} }

// Describe says what the tunlet is.
func (*Tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: Name, Version: "1",
		Summary: "finds a good value of a variable of the program, without a model, by trying",
		Objective: sdk.Objective{
			Name: "calls_per_second", Unit: "1/s",
			Description: "calls per second of a function of the program that is told: one is the same work whatever the value is",
		},
		Knobs: []sdk.Knob{{Name: knob, Action: sdk.SetVariable("", "", 0, sdk.Value{}), Description: "the program's own variable, named by an option"}},
		// Every value that is tried is taken back, and counts as one.
		MaxTries: mostTries + trials.Others, MinGain: minGain,
		Wake:    []sdk.Wake{{Levels: []sdk.Level{{Signal: sdk.RunTime, AtLeast: computing}}, Lasting: 300 * time.Millisecond, Averaged: true}},
		Options: sdk.OptionsOf[options](),
	}
}

// Configure takes the options of Describe.
func (t *Tunlet) Configure(given map[string]string) error { return t.program.configure(given) }

// ApplicationStarted looks whether changes are made.
func (t *Tunlet) ApplicationStarted(_ *sdk.Host, app sdk.Application) { t.tunes = app.Mode == "tune" }

// ProcessStarted has calls counted in a process that may be part of the program.
func (t *Tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) {
	m := t.members[p.Handle]
	if m == nil {
		h.Want(p.Handle, sdk.NoSamples())
		if !t.tunes || !t.program.configured() || !objects.RunsOrMaps(p, t.program.Object) {
			return
		}
		if len(t.members) >= maxMembers {
			h.PassOver(p.Handle, maxMembers)
			return
		}
		m = &member{}
		t.members[p.Handle] = m
	}
	t.watch(h, p.Handle, m)
}

// watch asks for the measure point, unless nothing more is to be found.
func (t *Tunlet) watch(h *sdk.Host, p sdk.Handle, m *member) {
	if m.watched || m.done || t.run != nil && t.run.Ended() {
		return
	}
	m.watched = true
	h.AddPoint(sdk.Point{
		ID: pointID(p), Object: t.program.Object, Symbols: []string{t.program.progress}, Processes: []sdk.Handle{p},
		Captures: []sdk.Capture{t.program.Global("value")}, Value: "value",
	})
}

// unwatch gives it back.
func (m *member) unwatch(h *sdk.Host, p sdk.Handle) {
	if m.watched {
		m.watched = false
		h.RemovePoint(pointID(p))
	}
}

func pointID(p sdk.Handle) string { return fmt.Sprintf("progress@%d", p) }

// handles are the members in order.
func (t *Tunlet) handles() []sdk.Handle { return slices.Sorted(maps.Keys(t.members)) }

// ProcessEnded forgets it. With the lead its program ends: the next one is searched
// anew.
func (t *Tunlet) ProcessEnded(h *sdk.Host, end sdk.ProcessEnd) {
	delete(t.members, end.Handle)
	if end.Handle != t.lead {
		return
	}
	t.lead, t.run = 0, nil
	for _, p := range t.handles() {
		t.watch(h, p, t.members[p])
	}
}

// PointChanged drops a process that is not part of the program, and gives up where
// calls are too many to be counted: there is no saying what a value achieves.
func (t *Tunlet) PointChanged(h *sdk.Host, c sdk.PointChange) {
	m := t.members[c.Process]
	if m == nil || c.Point != pointID(c.Process) || c.Placed || c.Removed {
		return
	}
	if c.Off {
		if c.Process == t.lead && !t.run.Ended() {
			t.run.GiveUp(h, fmt.Sprintf("%s is called too often to be counted, name another function: %s", t.program.progress, c.Reason))
		}
		return
	}
	if t.lead == 0 && !t.told {
		t.told = true
		h.Remark(c.Process, "calls of %s cannot be counted: %s", t.program.progress, c.Reason)
	}
	m.unwatch(h, c.Process)
	m.done = true
	if c.Process == t.lead && !t.run.Ended() { // it was placed before
		t.run.GiveUp(h, c.Reason)
	}
}

// HandleAggregates reports the objective, and goes on with the search.
func (t *Tunlet) HandleAggregates(h *sdk.Host, a sdk.Aggregates) {
	if a.Seconds() == 0 {
		return
	}
	for _, item := range a.Items {
		m := t.members[item.Process]
		if m == nil || item.Count == 0 || item.Point != pointID(item.Process) {
			continue
		}
		m.calls = true
		if t.lead == 0 && !m.done {
			t.lead, t.run = item.Process, t.search(h)
		}
	}
	if t.lead == 0 || !a.Known(t.lead) {
		return
	}
	for _, item := range a.Items {
		if item.Process == t.lead && item.Point == pointID(t.lead) {
			h.Objective(t.lead.Scope(), float64(item.Count)/a.Seconds())
			t.run.Count(h, item.Count, item.Min, item.Max, a.Seconds())
		}
	}
}

// Evaluate waits while the function is not called; otherwise the measurement decides.
func (*Tunlet) Evaluate(e sdk.Evaluation) (sdk.Verdict, string) { return e.ByMeasurement("calls") }

// Tick has the search go on after a rest.
func (t *Tunlet) Tick(h *sdk.Host) {
	if t.run != nil {
		t.run.Tick(h)
	}
}

// ProposalChanged follows its proposals.
func (t *Tunlet) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	if c.Earlier != nil {
		t.takeUp(h, c.Earlier)
		return
	}
	if t.run != nil {
		t.run.ProposalChanged(h, c)
	}
}
