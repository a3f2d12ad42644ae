// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	name = "small-writes"
	// What is changed: a global variable of the program, of four bytes.
	knob, object, symbol = "batch", "*", "batch"
	mostBatch            = 4096

	// span is how long the symptom must last, and how long it is averaged over: CPU
	// times come in steps of 10 ms.
	span = 500 * time.Millisecond
	// awake is how long it must last for the tunlet to be started.
	awake = 100 * time.Millisecond
)

// options are what can be configured.
type options struct {
	Batch int64 `default:"64" doc:"the value that the variable gets" max:"4096" min:"1" option:"batch"`
}

// tunlet follows every process of a session. The SDK makes one for each session,
// and one call at a time: there are no locks.
type tunlet struct {
	options options
	watches map[sdk.Handle]*watch
}

// What it wants to hear, beside Describe; package sdk has more of these.
var (
	_ sdk.Configurer           = (*tunlet)(nil)
	_ sdk.ProcessStartObserver = (*tunlet)(nil)
	_ sdk.ProcessEndObserver   = (*tunlet)(nil)
	_ sdk.SampleHandler        = (*tunlet)(nil)
	_ sdk.ProposalObserver     = (*tunlet)(nil)
)

func newTunlet() sdk.Tunlet { return &tunlet{watches: map[sdk.Handle]*watch{}} }

// Describe says what the tunlet is.
func (*tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: name, Version: "1", Summary: "makes a program write more at once",
		Objective: sdk.Objective{
			Name: "written_bytes_per_second", Unit: "B/s",
			Description: "bytes that the program writes per second",
		},
		Knobs: []sdk.Knob{{
			Name: knob, Action: sdk.SetVariable(object, symbol, 4, sdk.Value{}), Description: "lines that are written at once", Min: sdk.Int(1), Max: sdk.Int(mostBatch),
		}},
		// Before this holds in a process, the tunlet is not even started.
		Wake:    []sdk.Wake{{Levels: []sdk.Level{{Signal: sdk.WriteCalls, AtLeast: leastCalls}}, Lasting: awake}},
		Options: sdk.OptionsOf[options](),
	}
}

// Configure takes the options of Describe, with their defaults.
func (t *tunlet) Configure(given map[string]string) (err error) {
	t.options, err = sdk.ReadOptions[options](given)
	return err
}

// ProcessStarted begins to follow a process.
func (t *tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) {
	if t.watches[p.Handle] == nil {
		t.watches[p.Handle] = newWatch(p.Handle)
		h.Want(p.Handle, sdk.SamplesFrom(sdk.Level{Signal: sdk.WriteCalls, AtLeast: leastCalls}))
	}
}

// ProcessEnded forgets it.
func (t *tunlet) ProcessEnded(_ *sdk.Host, end sdk.ProcessEnd) { delete(t.watches, end.Handle) }

// HandleSamples looks for the symptom.
func (t *tunlet) HandleSamples(h *sdk.Host, s sdk.Samples) {
	for _, sample := range s.Items {
		if w := t.watches[sample.Process]; w != nil {
			w.take(h, sample, t.options.Batch)
		}
	}
}

// ProposalChanged follows the proposals. Every session may judge a change otherwise
// than the model: what was not kept is tried again, a few times.
func (t *tunlet) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	for _, w := range t.watches {
		if w.proposal == c.Proposal && c.State.Final() {
			w.settled(h, c.State)
		}
	}
}
