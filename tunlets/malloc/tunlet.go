// SPDX-License-Identifier: Apache-2.0

package malloc

import (
	"fmt"
	"maps"
	"slices"

	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/perprocess"
)

// Name of the tunlet.
const Name = "malloc"

// OptionMemory names the option that bounds the job's memory, in bytes, beside
// what the node and its cgroups have.
const OptionMemory = "memory_bytes"

// Tunlet follows every process of a session. Made by New.
type Tunlet struct {
	memory  uint64
	watches perprocess.Watches[*watch]
}

// New makes the tunlet.
func New() sdk.Tunlet { return new(Tunlet) }

// Describe says what the tunlet is.
func (*Tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: Name, Version: "1",
		Summary: "keeps large freed blocks in the process instead of giving them back to the kernel and taking them again",
		Objective: sdk.Objective{
			Name: "large_allocations_per_second", Unit: "1/s",
			Description: "allocations of 128 KiB and more per second of the process; a unit of the program's work makes " +
				"the same number of them with any setting, so their rate stands for its speed",
		},
		Knobs: []sdk.Knob{
			{Name: knobMmap, Description: "block size from which glibc maps a block of its own", Min: sdk.Uint(0), Max: sdk.Uint(hugeBytes)},
			{Name: knobTrim, Description: "unused bytes at the heap's top from which glibc gives them back", Min: sdk.Uint(0), Max: sdk.Uint(gib)},
			{Name: knobPad, Description: "bytes by which glibc lets the heap grow beyond what it needs", Min: sdk.Uint(0), Max: sdk.Uint(64 * mib)},
		},
		MaxTries: maxTries, MinGain: 0.05,
		Wake:    wakes(),
		Options: []sdk.Option{{Name: OptionMemory, Type: sdk.BytesOption, Description: "memory of the job, which the kept blocks must leave room in, beside what is free on the node and in its cgroups"}},
	}
}

// Configure takes the options of Describe.
func (t *Tunlet) Configure(options map[string]string) (err error) {
	if text, given := options[OptionMemory]; given {
		t.memory, err = sdk.ParseBytes(text)
	}
	return err
}

// ProcessStarted begins to follow a process.
func (t *Tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) {
	if p.Maps("linked:go") && !p.Maps("libc.so*") { // it has an allocator of its own
		t.ProcessEnded(h, sdk.ProcessEnd{Handle: p.Handle})
		h.Want(p.Handle, sdk.NoSamples())
		return
	}
	if w, begun := t.watches.Follow(h, p.Handle, func() *watch { return newWatch(p) }); begun {
		t.sleep(h, w)
	}
}

// ProcessEnded forgets it.
func (t *Tunlet) ProcessEnded(h *sdk.Host, end sdk.ProcessEnd) {
	if w := t.watches.Of(end.Handle); w != nil && w.active() {
		w.release(h)
	}
	t.watches.Forget(end.Handle)
}

// HandleSamples looks for the symptom.
func (t *Tunlet) HandleSamples(h *sdk.Host, s sdk.Samples) {
	for _, sample := range s.Items {
		w := t.watches.Of(sample.Process)
		if w == nil {
			continue
		}
		w.sample(h, sample)
		if w.idle() {
			t.sleep(h, w)
		}
	}
}

// sleep wants no samples of a process before it faults so much that there may
// be something to do. Where memory is bounded, the size of every process
// counts.
func (t *Tunlet) sleep(h *sdk.Host, w *watch) {
	if t.memory > 0 {
		return
	}
	w.window.Reset()
	if w.state == quiet {
		h.Want(w.handle, sdk.SamplesFrom(sdk.Level{Signal: sdk.MinorFaults, AtLeast: leastFaults}))
	} else {
		h.Want(w.handle, w.looks.Until(h.Now(), sdk.NoSamples()))
	}
}

// HandleAggregates counts blocks and reports the objective; when there is a
// baseline, it decides.
func (t *Tunlet) HandleAggregates(h *sdk.Host, a sdk.Aggregates) {
	if a.Seconds() == 0 {
		return
	}
	counted := map[sdk.Handle]blocks{}
	for _, item := range a.Items {
		b := counted[item.Process]
		b.seconds = a.Seconds()
		b.add(item)
		counted[item.Process] = b
	}
	for _, p := range slices.Sorted(maps.Keys(counted)) {
		if w := t.watches.Of(p); w != nil && a.Known(p) {
			w.count(h, a.From, counted[p])
			t.decide(h, w)
		}
	}
}

// PointChanged hears whether the hooks could be placed.
func (t *Tunlet) PointChanged(h *sdk.Host, c sdk.PointChange) {
	if w := t.watches.Of(c.Process); w != nil {
		w.placed(h, c)
	}
}

// decide proposes, gives up or waits, once there is a baseline.
func (t *Tunlet) decide(h *sdk.Host, w *watch) {
	if w.state != counting || w.samples < baseline {
		return
	}
	l, ok := loadOf(w.window.Since(w.since))
	pages := w.blocks.pagesPerFault(l)
	switch helped := w.blocks.explains(l, w.blocks.helped); {
	case ok && symptom(l, pages) && helped >= leastExplained:
		t.propose(h, w, l, w.gain(l, pages))
	case ok && symptom(l, pages) && w.blocks.explains(l, w.blocks.bytes) >= leastExplained:
		h.Remark(w.handle, "blocks of 32 MiB and more cause %.0f page faults/s; glibc maps those whatever it is told: no change proposed", l.faults)
		w.release(h)
		w.enter(gaveUp, h.Now())
	case h.Now().Sub(w.since) >= patience && w.samples >= leastLooks:
		w.rest(h)
	}
}

// propose proposes the settings, unless memory forbids them.
func (t *Tunlet) propose(h *sdk.Host, w *watch, l load, gain float64) {
	s, ok := settingsFor(t.room(w), w.arenas())
	if !ok {
		h.Remark(w.handle, "large blocks cause %.0f page faults/s, but too little memory is free to keep them: no change proposed", l.faults)
		w.release(h)
		w.enter(gaveUp, h.Now())
		return
	}
	w.tries++
	w.proposal = fmt.Sprintf("%s-%d-%d", Name, w.handle, w.tries)
	h.Propose(sdk.Proposal{
		ID: w.proposal, Changes: s.changes(w.handle), Scope: w.handle.Scope(),
		Reason: fmt.Sprintf("%.0f minor page faults/s, %.0f %% of them for memory given back before; %.0f blocks/s of %.1f MiB on average; %.0f %% of CPU time in the kernel",
			l.faults, 100*l.churn, w.blocks.count/w.blocks.seconds, w.blocks.bytes/w.blocks.count/mib, 100*min(1, l.system/l.run)),
		PredictedGain: gain, Confidence: 0.9,
	})
	w.enter(proposed, h.Now())
}

// room is how many bytes the settings may be based on in a process: what it could
// still take before somebody has to go without, and what the job's memory leaves,
// shared by the processes that have the problem at this time or may keep what they
// were allowed to; unbounded where nothing is known.
func (t *Tunlet) room(w *watch) uint64 {
	room := unbounded
	if w.available != nil {
		room = *w.available / t.storms(func(other *watch) bool { return other.host == w.host && other.claims() })
	}
	if t.memory > 0 {
		left := t.memory - min(t.memory, t.resident())
		room = min(room, left/t.storms((*watch).claims))
	}
	return room
}

// resident is the memory of all processes that are followed.
func (t *Tunlet) resident() uint64 {
	sum := 0.0
	for w := range t.watches.All() {
		peak, _ := w.window.Max(sdk.ResidentBytes)
		sum += peak
	}
	return uint64(sum)
}

// storms counts the processes that share the room, one at least.
func (t *Tunlet) storms(share func(*watch) bool) uint64 {
	n := uint64(0)
	for w := range t.watches.All() {
		if share(w) {
			n++
		}
	}
	return max(1, n)
}

// Evaluate waits while the program does something else: without allocations
// there is no progress to compare. Otherwise the measured objective decides.
func (t *Tunlet) Evaluate(e sdk.Evaluation) (sdk.Verdict, string) {
	return e.ByMeasurement("large allocations")
}

// ProposalChanged follows its proposals; hooks are given back when nothing is judged any
// more. What was kept is looked at from time to time.
func (t *Tunlet) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	for w := range t.watches.All() {
		if w.proposal != c.Proposal || w.state != proposed || !c.State.Final() {
			w.hear(h, c)
			continue
		}
		w.proposal = ""
		if c.State == sdk.Kept {
			w.keep(h, c.Proposal)
			continue
		}
		w.release(h)
		switch {
		case (c.State == sdk.Undone || c.State == sdk.Refused) && w.tries < maxTries:
			w.until = h.Now().Add(sdk.RetryPause)
			w.enter(quiet, h.Now())
		default:
			w.enter(gaveUp, h.Now())
		}
	}
}
