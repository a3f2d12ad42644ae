// SPDX-License-Identifier: Apache-2.0

package affinity

import (
	"maps"
	"slices"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "affinity"

// maxProcesses bounds those that are followed at one time.
const maxProcesses = 1024

// Tunlet follows the processes of a session. Made by New.
type Tunlet struct {
	nodes     map[string]*node     // they stay: there are no more of them than hosts
	processes map[sdk.Handle]*node // the node that each is on
}

// New makes the tunlet.
func New() sdk.Tunlet {
	return &Tunlet{nodes: map[string]*node{}, processes: map[sdk.Handle]*node{}}
}

// Describe says what the tunlet is.
func (*Tunlet) Describe() sdk.Description {
	lasting := func(levels ...sdk.Level) sdk.Wake {
		return sdk.Wake{Levels: levels, Lasting: symptomSpan, Averaged: true}
	}
	return sdk.Description{
		Name: Name, Version: "1",
		Summary: "gives threads that are bound to CPUs which others want as well all CPUs that they may have, and puts pairs of threads that wake each other on one",
		Objective: sdk.Objective{
			Name: "progress_per_second", Unit: "1/s",
			Description: "calls of read and write of the processes that are changed, or the CPU time that they get where they make few of them",
		},
		Knobs:    []sdk.Knob{{Name: knob, Description: "CPUs that threads may run on"}},
		MaxTries: maxTries, MinGain: 0.1,
		Wake: []sdk.Wake{
			// Threads that may use every CPU cannot be given more.
			lasting(sdk.Level{Signal: sdk.RunqueueWait, AtLeast: waiting * float64(time.Second)}, sdk.Level{Signal: sdk.BoundThreads, AtLeast: 1}),
			lasting(sdk.Level{Signal: sdk.VoluntarySwitches, AtLeast: leastSleeps}, sdk.Level{Signal: sdk.WriteCalls, AtLeast: leastSleeps / 2}),
		},
	}
}

// ProcessStarted begins to follow a process.
func (t *Tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) {
	n := t.processes[p.Handle]
	if n != nil {
		n.processes[p.Handle].usable = p.CPUsUsable
		return
	}
	if len(t.processes) >= maxProcesses {
		h.PassOver(p.Handle, maxProcesses)
		return
	}
	if n = t.nodes[p.Host]; n == nil {
		n = newNode(p.Host)
		t.nodes[p.Host] = n
	}
	followed := newProcess(p.Handle)
	followed.usable = p.CPUsUsable
	n.processes[p.Handle], t.processes[p.Handle] = followed, n
	followed.rest(h)
}

// ProcessEnded forgets it.
func (t *Tunlet) ProcessEnded(h *sdk.Host, end sdk.ProcessEnd) {
	if n := t.processes[end.Handle]; n != nil {
		delete(t.processes, end.Handle)
		n.left(h, n.processes[end.Handle])
	}
}

// HandleSamples looks for the symptoms, and reads what it asked for.
func (t *Tunlet) HandleSamples(h *sdk.Host, s sdk.Samples) {
	heard := map[string]time.Time{}
	for _, sample := range s.Items {
		n := t.processes[sample.Process]
		if n == nil {
			continue
		}
		p := n.processes[sample.Process]
		p.window.Add(sample)
		p.heard = sample.At
		if p.looked {
			n.read(p, sample.At, sample.Details)
		} else if n.state == quiet {
			p.idle(h)
		}
		heard[n.host] = sample.At
	}
	for _, host := range slices.Sorted(maps.Keys(heard)) {
		t.nodes[host].look(h, heard[host])
	}
}

// takeUp leaves the processes alone that it had changed before it was started again, and
// watches over pairs that it had joined.
func (t *Tunlet) takeUp(h *sdk.Host, c sdk.ProposalChange) {
	var n *node // a proposal is of one
	for _, change := range c.Earlier.Changes {
		if on := t.processes[change.Process]; on != nil {
			n = on
			n.processes[change.Process].proposal = c.Proposal
			n.sequence = max(n.sequence, c.Earlier.Number())
			h.Want(change.Process, sdk.NoSamples())
		}
	}
	if n == nil {
		return
	}
	if j := takeUpJoined(n, c); j != nil {
		n.joined[c.Proposal] = j
		for _, p := range j.members {
			h.Want(p.handle, sdk.AllSamples())
		}
	}
}

// Evaluate waits while nothing moves: there is no progress to compare. Otherwise
// the measured objective decides.
func (*Tunlet) Evaluate(e sdk.Evaluation) (sdk.Verdict, string) {
	return e.ByMeasurement("progress")
}

// ProposalChanged follows its proposals.
func (t *Tunlet) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	if c.Earlier != nil {
		t.takeUp(h, c)
		return
	}
	if !c.State.Final() {
		return
	}
	for _, host := range slices.Sorted(maps.Keys(t.nodes)) {
		if n := t.nodes[host]; n.proposal == c.Proposal || n.changedBy(c.Proposal) {
			n.ended(h, c)
			return
		}
	}
}
