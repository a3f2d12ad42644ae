// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/perprocess"
)

const (
	name = "small-writes"
	// What is changed: a global variable of the program, of four bytes.
	knob, object, symbol = "batch", "*", "batch"
	mostBatch            = 4096
	// maxTries bounds the proposals in one process.
	maxTries = 3

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

// tunlet is what is known of the problem in one process. The frame around it
// (tunlets/sdk/perprocess) follows each process, reports the objective, and proposes
// when the symptom has lasted and there is something to judge by.
type tunlet struct{ options options }

func newTunlet() sdk.Tunlet { return perprocess.New(new(tunlet), span) }

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
		Options: sdk.OptionsOf[options](), MaxTries: maxTries,
	}
}

// Configure takes the options of Describe, with their defaults.
func (t *tunlet) Configure(given map[string]string) (err error) {
	t.options, err = sdk.ReadOptions[options](given)
	return err
}

// Progress is the objective between two samples.
func (*tunlet) Progress(latest sdk.Span) (float64, bool) { return latest.Rate(sdk.WrittenBytes) }

// Symptom says whether the process has the problem.
func (*tunlet) Symptom(recent sdk.Span) bool {
	l, known := loadOf(recent)
	return known && l.symptom()
}

// Propose is the change, with what it was led by.
func (t *tunlet) Propose(_ sdk.Process, recent sdk.Span) (sdk.Proposal, bool) {
	l, known := loadOf(recent)
	return sdk.Proposal{
		Confidence: 0.7, PredictedGain: l.gain(float64(t.options.Batch)),
		Reason:  fmt.Sprintf("writes %.0f bytes at a time, %.0f times/s", l.bytes/l.calls, l.calls),
		Changes: []sdk.Change{{Knob: knob, Action: sdk.SetVariable(object, symbol, 4, sdk.Int(t.options.Batch))}},
	}, known
}
