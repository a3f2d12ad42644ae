// SPDX-License-Identifier: Apache-2.0

package masterworker

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/objects"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// maxMembers bounds the processes that are followed.
const maxMembers = 4096

// Plan is a value of the variable that a model takes for better.
type Plan struct {
	// Value of the variable.
	Value sdk.Value
	// Gain that is predicted: how many times more rounds per second.
	Gain float64
	// Reason for people, with the figures.
	Reason string
}

// Worker is a thread that does tasks.
type Worker struct {
	Process sdk.Handle
	Thread  uint64
}

// Spec is what differs between the tunlets.
type Spec struct {
	// Name of the tunlet.
	Name string
	// Knob is its name for the variable.
	Knob string
	// Program has the functions, Variable is the name of the variable.
	Program  Program
	Variable string
	// Bytes is the size of the variable, an integer of 4 or 8 bytes, or a double.
	Bytes uint32
	// Real says that it is a double.
	Real bool
	// Plan is the model: it says which value would be better; false: none. What was
	// measured is Enough.
	Plan func(m Measured) (Plan, bool)
	// Worker, if not nil, is told of the tasks of each single worker in an interval.
	Worker func(w Worker, tasks sdk.Aggregate)
	// Restarted, if not nil, hears that a new measurement begins: what Worker was told
	// before is of another setting or another program.
	Restarted func()
	// MinGain is the least gain worth a proposal: 1.1 = a tenth more.
	MinGain float64
}

// Tunlet follows one program and proposes what its model plans. Embed it in the
// tunlet, which adds Describe and calls Setup before anything else.
type Tunlet struct {
	spec Spec

	members map[sdk.Handle]*member
	master  sdk.Handle // the process whose rounds count; 0: not known yet
	sums    Measured
	from    time.Time // nothing counts before
	tries   int
	count   int
	told    bool   // why calls cannot be counted
	pending string // the proposal on its way
	kept    string // the one that has the variable, or had it before the one on its way
}

// Setup says what is to be tuned, and by which model.
func (t *Tunlet) Setup(spec Spec) { t.spec, t.members = spec, map[sdk.Handle]*member{} }

// configured says that all is known; a tunlet is not started before, but the
// harness and a replay do.
func (t *Tunlet) configured() bool {
	p := t.spec.Program
	return t.spec.Variable != "" && p.Round != "" && p.Dispatch != "" && p.Task != ""
}

// ProcessStarted waits for a process that may be part of the program to wait for
// others.
func (t *Tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) {
	if m := t.members[p.Handle]; m != nil {
		m.usable = p.CPUsUsable
		return
	}
	if !t.configured() || !objects.RunsOrMaps(p, t.spec.Program.objectPattern()) {
		h.Want(p.Handle, sdk.NoSamples())
		return
	}
	if len(t.members) >= maxMembers {
		h.PassOver(p.Handle, maxMembers)
		return
	}
	t.members[p.Handle] = &member{
		handle: p.Handle, host: p.Host, usable: p.CPUsUsable, window: sdk.NewWindow(windowSpan),
	}
	if t.gaveUp() {
		h.Want(p.Handle, sdk.NoSamples())
		return
	}
	h.Want(p.Handle, sdk.SamplesFrom(levels()...))
}

// ProcessEnded forgets it. With the master its program ends: of the next one, a script
// may start many, nothing is known, and a change whose judgement its end cut short
// did not fail.
func (t *Tunlet) ProcessEnded(h *sdk.Host, end sdk.ProcessEnd) {
	delete(t.members, end.Handle)
	if end.Handle != t.master {
		return
	}
	if t.gaveUp() {
		for _, handle := range slices.Sorted(maps.Keys(t.members)) {
			h.Want(handle, sdk.SamplesFrom(levels()...))
		}
	}
	t.master, t.tries, t.pending, t.kept = 0, 0, "", ""
	t.restart(h, 0)
}

// HandleSamples has processes watched that wait for others.
func (t *Tunlet) HandleSamples(h *sdk.Host, s sdk.Samples) {
	for _, sample := range s.Items {
		m := t.members[sample.Process]
		if m == nil || t.gaveUp() {
			continue
		}
		m.window.Add(sample)
		span := m.window.Span()
		switches, ok := span.Rate(sdk.VoluntarySwitches)
		threads, _ := m.window.Last(sdk.Threads)
		if ok && span.Duration() >= leastSpan && switches >= waitsPerSecond || threads >= 2 {
			t.watch(h, m)
		}
	}
}

// PointChanged drops a process that is not part of the program. Of one that should be, the
// owner hears why, once: all ranks lack the same function.
func (t *Tunlet) PointChanged(h *sdk.Host, c sdk.PointChange) {
	m := t.members[c.Process]
	if m == nil || c.Placed || c.Off || c.Removed {
		return
	}
	if (t.master == 0 || t.master == c.Process) && t.spec.Program.Object != "" && !t.told {
		t.told = true
		h.Remark(c.Process, "%s: calls of %s cannot be counted: %s", t.spec.Name, t.spec.Program.function(kindOf(c.Point)), c.Reason)
	}
	m.unwatch(h)
	delete(t.members, c.Process)
}

// HandleAggregates adds up an interval, reports the objective, and plans.
func (t *Tunlet) HandleAggregates(h *sdk.Host, a sdk.Aggregates) {
	if a.Seconds() == 0 {
		return
	}
	for _, item := range a.Items {
		m := t.members[item.Process]
		if m == nil || kindOf(item.Point) != kindRound || item.Count == 0 {
			continue
		}
		m.rounds = true
		if t.master == 0 {
			t.master = item.Process
			t.restart(h, warmUp)
		}
	}
	if t.master == 0 || a.From.Before(t.from) || slices.Contains(a.Unknown, t.master) {
		return
	}
	t.report(h, a)
	if t.missing(a.Unknown) <= len(t.members)/mostMissing {
		t.add(a)
		t.consider(h)
	}
}

// mostMissing is the share of the processes, as its inverse, whose calls may go
// uncounted in an interval that is added up: of many, some always do.
const mostMissing = 10

// missing counts the processes among some.
func (t *Tunlet) missing(among []sdk.Handle) (count int) {
	for _, p := range among {
		if t.members[p] != nil {
			count++
		}
	}
	return count
}

// report reports the objective of an interval: the master tells the rounds, whatever
// is known of the others. The calls of one of many workers may go uncounted for long.
func (t *Tunlet) report(h *sdk.Host, a sdk.Aggregates) {
	rounds, here := 0.0, false
	for _, item := range a.Items {
		here = here || item.Process == t.master
		if item.Process == t.master && kindOf(item.Point) == kindRound {
			rounds += float64(item.Count)
		}
	}
	if here {
		h.Objective(t.master.Scope(), rounds/a.Seconds())
	}
}

// add adds an interval of the host that it is of.
func (t *Tunlet) add(a sdk.Aggregates) {
	here := false
	for _, item := range a.Items {
		if t.members[item.Process] == nil {
			continue
		}
		t.sums.add(kindOf(item.Point), item, item.Process == t.master, t.spec.Real)
		here = here || item.Process == t.master
		if item.Keyed && item.Count > 0 && t.spec.Worker != nil {
			t.spec.Worker(Worker{item.Process, item.Key}, item)
		}
	}
	if here {
		t.sums.Seconds += a.Seconds()
	}
}

// consider asks the model, when there is enough to go by and nothing on its way.
func (t *Tunlet) consider(h *sdk.Host) {
	if t.pending != "" || t.gaveUp() || !t.sums.Enough() {
		return
	}
	var spans []sdk.Span
	for _, handle := range slices.Sorted(maps.Keys(t.members)) {
		spans = append(spans, t.members[handle].window.Span())
	}
	t.sums.RunShare, t.sums.CPUs = runShare(spans), t.cpus()
	plan, ok := t.spec.Plan(t.sums)
	if !ok || plan.Gain < t.spec.MinGain {
		t.restart(h, rejudge)
		return
	}
	t.propose(h, plan)
}

// maxTries is how many changes may come to nothing in one run of the program.
const maxTries = 3

// gaveUp says that the program is left alone until its end.
func (t *Tunlet) gaveUp() bool { return t.tries >= maxTries }

// propose sets the variable in all processes that begin rounds.
func (t *Tunlet) propose(h *sdk.Host, plan Plan) {
	t.count++
	t.pending = fmt.Sprintf("%s-%d", t.spec.Name, t.count)
	p := sdk.Proposal{
		ID: t.pending, Scope: t.master.Scope(), Reason: plan.Reason, PredictedGain: plan.Gain, Confidence: 0.7, Replaces: t.kept,
	}
	for _, handle := range slices.Sorted(maps.Keys(t.members)) {
		if t.members[handle].rounds {
			p.Changes = append(p.Changes, sdk.Change{
				Knob: t.spec.Knob, Process: handle,
				Action: sdk.SetVariable(t.spec.Program.objectPattern(), t.spec.Variable, t.spec.Bytes, plan.Value),
			})
		}
	}
	h.Propose(p)
}

// restart begins a new measurement after a while.
func (t *Tunlet) restart(h *sdk.Host, after time.Duration) {
	t.from = h.Now().Add(after)
	t.sums = Measured{RunShare: 1}
	if t.spec.Restarted != nil {
		t.spec.Restarted()
	}
}

// Evaluate waits while no round ends; otherwise the measurement decides.
func (*Tunlet) Evaluate(e sdk.Evaluation) (sdk.Verdict, string) { return e.ByMeasurement("rounds") }
