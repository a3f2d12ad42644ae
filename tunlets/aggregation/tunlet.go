// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"fmt"
	"time"

	"github.com/attune-hpc/attune/tunlets/kit/objects"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/perprocess"
)

// Name of the tunlet.
const Name = "aggregation"

// knob is what is changed.
const knob = "program.items_per_message"

const (
	// symptomSpan is over how long the traffic is taken.
	symptomSpan = 300 * time.Millisecond
	// maxTries per process that come to nothing.
	maxTries = 2
)

// problem is what the tunlet knows, in one process at a time.
type problem struct{ options options }

var _ perprocess.Chooser = (*problem)(nil)

// New makes the tunlet.
func New() sdk.Tunlet { return perprocess.New(new(problem), symptomSpan) }

// Describe says what the tunlet is.
func (*problem) Describe() sdk.Description {
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
		Options: sdk.OptionsOf[options](),
	}
}

// Configure takes the options of Describe, which are settled.
func (p *problem) Configure(given map[string]string) (err error) {
	if p.options, err = sdk.ReadOptions[options](given); err != nil {
		return err
	}
	return p.options.check()
}

// Concerns says whether a process has the variable, as far as its objects tell.
func (p *problem) Concerns(process sdk.Process) bool {
	return p.options.Variable != "" && objects.RunsOrMaps(process, p.options.Object)
}

// Progress is the objective: bytes that the process writes per second.
func (*problem) Progress(latest sdk.Span) (float64, bool) { return latest.Rate(sdk.WrittenBytes) }

// Symptom says whether a process sends many messages.
func (*problem) Symptom(recent sdk.Span) bool {
	messages, known := recent.Rate(sdk.WriteCalls)
	return known && messages >= leastMessages
}

// Propose proposes a number of items if the model sees a gain.
func (p *problem) Propose(_ sdk.Process, recent sdk.Span) (proposal sdk.Proposal, sensible bool) {
	traffic, known := trafficOf(recent)
	if !known {
		return proposal, false
	}
	o := p.options
	plan, ok := planFor(traffic, o.Present, o.Most, o.Latency.Seconds())
	return sdk.Proposal{
		PredictedGain: plan.gain, Confidence: 0.7,
		Reason: fmt.Sprintf("%.0f messages/s of %.0f bytes; one takes %.2f us of the process' time, an item %.2f us: %d to a message cost and wait least",
			traffic.messages, traffic.bytes/traffic.messages, 1e6*plan.latency, 1e6*plan.work, plan.items),
		Changes: []sdk.Change{{
			Knob:   knob,
			Action: sdk.SetVariableFrom(o.Object, o.Variable, uint32(o.Size), sdk.Int(o.Present), sdk.Int(plan.items)),
		}},
	}, ok
}
