// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "aggregation"

// knob is what is changed.
const knob = "program.items_per_message"

const (
	// symptomSpan is over how long the traffic is taken.
	symptomSpan = 300 * time.Millisecond
	// baseline is how many values of the objective there must be before a proposal.
	baseline = 5
	// maxTries per process that come to nothing.
	maxTries = 2
	// maxWatches bounds the processes that are followed at one time.
	maxWatches = 1024
)

// Tunlet follows every process of a session. Made by New.
type Tunlet struct {
	program program
	watches map[sdk.Handle]*watch
}

// watch follows one process.
type watch struct {
	handle   sdk.Handle
	window   *sdk.Window
	last     sdk.Sample
	awake    bool   // all samples are wanted
	values   int    // of the objective since then
	proposal string // on its way or in force; empty: none
	tries    int
	until    time.Time // no proposal before
}

var (
	_ sdk.Configurer           = (*Tunlet)(nil)
	_ sdk.ProcessStartObserver = (*Tunlet)(nil)
	_ sdk.ProcessEndObserver   = (*Tunlet)(nil)
	_ sdk.SampleHandler        = (*Tunlet)(nil)
	_ sdk.Evaluator            = (*Tunlet)(nil)
	_ sdk.ProposalObserver     = (*Tunlet)(nil)
)

// New makes the tunlet.
func New() sdk.Tunlet { return &Tunlet{watches: map[sdk.Handle]*watch{}} }

// Describe says what the tunlet is.
func (*Tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: Name, Version: "1",
		Summary: "has a program send several small items in one message, by a variable that it is told of",
		Objective: sdk.Objective{
			Name: "written_bytes_per_second", Unit: "B/s",
			Description: "bytes that the process writes per second: an item has as many in whatever message it is sent",
		},
		Knobs:    []sdk.Knob{{Name: knob, Action: sdk.SetVariable("", "", 0, sdk.Value{}), Description: "items that the program sends in one message", Min: sdk.Int(1), Max: sdk.Int(1_000_000)}},
		MaxTries: maxTries, MinGain: 0.05,
		Wake:    []sdk.Wake{{Levels: []sdk.Level{{Signal: sdk.WriteCalls, AtLeast: leastMessages}}, Lasting: 100 * time.Millisecond}},
		Options: options(),
	}
}

// Configure takes the options of Describe.
func (t *Tunlet) Configure(given map[string]string) error { return t.program.configure(given) }

// ProcessStarted begins to follow a process that has the variable, as far as its
// objects tell. It is told again of one that loads another object.
func (t *Tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) {
	if t.watches[p.Handle] == nil && len(t.watches) < maxWatches && t.program.variable != "" && t.program.in(p) {
		t.watches[p.Handle] = &watch{handle: p.Handle, window: sdk.NewWindow(symptomSpan)}
		h.Want(p.Handle, sdk.SamplesFrom(sdk.Level{Signal: sdk.WriteCalls, AtLeast: leastMessages}))
	}
}

// ProcessEnded forgets it.
func (t *Tunlet) ProcessEnded(_ *sdk.Host, end sdk.ProcessEnd) { delete(t.watches, end.Handle) }

// HandleSamples reports the objective, and looks for the symptom.
func (t *Tunlet) HandleSamples(h *sdk.Host, s sdk.Samples) {
	for _, sample := range s.Items {
		if w := t.watches[sample.Process]; w != nil {
			w.sample(h, sample)
			t.decide(h, w)
		}
	}
}

// sample takes a round's signals. From the first one on, which is there because of
// the messages, all are wanted, until there are fewer messages again.
func (w *watch) sample(h *sdk.Host, s sdk.Sample) {
	if !w.awake {
		w.awake, w.values = true, 0
		h.Want(w.handle, sdk.AllSamples())
	} else if rate, ok := sdk.SpanBetween(w.last, s).Rate(sdk.WrittenBytes); ok {
		w.values++
		h.Objective(w.scope(), rate)
	}
	w.last = s
	w.window.Add(s)
	span := w.window.Latest(symptomSpan)
	messages, ok := span.Rate(sdk.WriteCalls)
	if w.proposal == "" && ok && span.Duration() >= symptomSpan*9/10 && messages < leastMessages {
		w.awake = false
		w.window.Reset()
		h.Want(w.handle, sdk.SamplesFrom(sdk.Level{Signal: sdk.WriteCalls, AtLeast: leastMessages}))
	}
}

// scope of the objective: each process for itself.
func (w *watch) scope() string { return fmt.Sprintf("process/%d", w.handle) }

// decide proposes, once there is a baseline and the model sees a gain.
func (t *Tunlet) decide(h *sdk.Host, w *watch) {
	span := w.window.Latest(symptomSpan)
	if !w.awake || w.proposal != "" || w.tries == maxTries || w.values < baseline ||
		span.Duration() < symptomSpan*9/10 || h.Now().Before(w.until) {
		return
	}
	traffic, known := trafficOf(span)
	if !known {
		return
	}
	p, ok := planFor(traffic, t.program.present, t.program.most, t.program.latency.Seconds())
	if !ok {
		return
	}
	w.tries++
	w.proposal = fmt.Sprintf("%s-%d-%d", Name, w.handle, w.tries)
	h.Propose(sdk.Proposal{
		ID: w.proposal, Scope: w.scope(), PredictedGain: p.gain, Confidence: 0.7,
		Reason: fmt.Sprintf("%.0f messages/s of %.0f bytes; one takes %.2f us of the process' time, an item %.2f us: %d to a message cost and wait least",
			traffic.messages, traffic.bytes/traffic.messages, 1e6*p.latency, 1e6*p.work, p.items),
		Changes: []sdk.Change{{
			Knob: knob, Process: w.handle,
			Action: sdk.SetVariableFrom(t.program.object, t.program.variable, t.program.size, sdk.Int(t.program.present), sdk.Int(p.items)),
		}},
	})
}

// Evaluate waits while nothing is written: there is no progress to compare.
// Otherwise the measured objective decides.
func (*Tunlet) Evaluate(e sdk.Evaluation) (sdk.Verdict, string) { return e.ByMeasurement("writes") }

// ProposalChanged follows its proposals. A change that is kept stays: its process
// has another value then than it started with, and is left alone.
func (t *Tunlet) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	if !c.State.Final() {
		return
	}
	for _, w := range t.watches {
		if w.proposal != c.Proposal {
			continue
		}
		w.proposal, w.until = "", h.Now().Add(sdk.RetryPause)
		if c.State == sdk.Kept {
			w.tries = maxTries
		}
		if w.tries == maxTries {
			h.Want(w.handle, sdk.NoSamples())
		}
	}
}
