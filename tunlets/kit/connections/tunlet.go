// SPDX-License-Identifier: Apache-2.0

package connections

import (
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/sdk/perprocess"
)

// Problem is what a tunlet knows of one trouble that connections have. Its
// functions keep no state.
type Problem struct {
	// Name, Version and Summary of the tunlet.
	Name, Version, Summary string
	// Knobs are all that Judge may name.
	Knobs []sdk.Knob
	// Wake says when a process may have the trouble. The first level of each
	// condition decides for which processes samples are wanted.
	Wake []sdk.Wake
	// Mark says whether a reading of a connection looks as the problem does; nil:
	// Judge needs no marks. The reading has TCP.
	Mark func(d *sdk.SocketDetail) bool
	// Judge says what cures a connection; false: it does not suffer.
	Judge func(l Load, f *Flow) (Cure, bool)
	// Confidence that a cure helps, 0 to 1.
	Confidence float64
}

// Load is what the process did while the connection was observed.
type Load struct {
	// CPU is CPU seconds per second, all threads, and Wait the same of waiting for
	// one.
	CPU, Wait float64
	// Exchanges is segments with data that came per second, over all of its
	// connections.
	Exchanges float64
}

// Cure is what helps one connection.
type Cure struct {
	// Knob of the connection's socket, and the Value that it gets.
	Knob  string
	Value sdk.Value
	// Gain is how many times faster the connection gets; at least 1.
	Gain float64
	// Reason for people: a phrase about the connection, with its figures.
	Reason string
}

// Tunlet follows the connections of every process of a session. Made by New.
type Tunlet struct {
	problem *Problem
	watches perprocess.Watches[*watch]
	taken   taken
}

// New makes a tunlet against a problem.
func New(p Problem) *Tunlet {
	return &Tunlet{problem: &p, taken: taken{}}
}

// Describe says what the tunlet is.
func (t *Tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: t.problem.Name, Version: t.problem.Version, Summary: t.problem.Summary,
		Objective: sdk.Objective{
			Name: "connection_bytes_per_second", Unit: "B/s",
			Description: "bytes that get through per second on all TCP connections of the process, both ways: acknowledged by the peer, or received",
		},
		Knobs: t.problem.Knobs, Wake: t.problem.Wake,
		MaxTries: maxTries, MinGain: 0.05,
	}
}

// ProcessStarted begins to follow a process.
func (t *Tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) {
	if w, begun := t.watches.Follow(h, p.Handle, func() *watch { return newWatch(t.problem, p, t.taken) }); begun {
		w.sleep(h)
	}
}

// ProcessEnded forgets it. Others may have its connections, and those are as they
// were, unless their change was kept.
func (t *Tunlet) ProcessEnded(_ *sdk.Host, end sdk.ProcessEnd) {
	if w := t.watches.Of(end.Handle); w != nil && w.state == proposed {
		w.giveBack()
	}
	t.watches.Forget(end.Handle)
}

// HandleSamples looks at processes that do something.
func (t *Tunlet) HandleSamples(h *sdk.Host, s sdk.Samples) {
	for _, sample := range s.Items {
		if w := t.watches.Of(sample.Process); w != nil {
			w.look(h, sample)
		}
	}
}

// Evaluate waits while nothing is exchanged; otherwise the measured objective
// decides.
func (t *Tunlet) Evaluate(e sdk.Evaluation) (sdk.Verdict, string) {
	return e.ByMeasurement("bytes on its connections")
}

// ProposalChanged follows the tunlet's proposals.
func (t *Tunlet) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	for w := range t.watches.All() {
		if w.proposal == c.Proposal && w.state == proposed && c.State.Final() {
			w.settled(h, c.State)
		} else {
			w.hear(h, c)
		}
	}
}
