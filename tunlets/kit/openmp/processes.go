// SPDX-License-Identifier: Apache-2.0

package openmp

import (
	"maps"
	"slices"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// maxProcesses bounds those that are followed at one time.
const maxProcesses = 1024

// Node is what a tunlet knows of the OpenMP processes of one node.
type Node interface {
	// Joined begins to follow a process, and Left ends it.
	Joined(p sdk.Handle, r Runtime)
	Left(h *sdk.Host, p sdk.Handle)
	// Sample takes a sample of a process; Look looks at what it means after a
	// round of them.
	Sample(h *sdk.Host, s sdk.Sample)
	Look(h *sdk.Host)
	// Count takes the regions that all its processes began in one interval, and how long
	// they lasted if that was asked for.
	Count(h *sdk.Host, a sdk.Aggregates, items []sdk.Aggregate)
	// Refused hears why the regions of a process cannot be counted.
	Refused(reason string)
	// TakeUp hears of a change of one of its processes by a proposal that was kept before
	// the tunlet was started again.
	TakeUp(h *sdk.Host, p *sdk.Proposal, c sdk.Change)
	// Ended hears of the end of a proposal; false if it is none of its own.
	Ended(h *sdk.Host, c sdk.ProposalChange) bool
}

// Processes follows the OpenMP processes of a session, node by node. A tunlet embeds
// it, and has with it all that the sdk calls but Describe. For one goroutine.
type Processes struct {
	newNode func(host string) Node
	takes   func(Runtime) bool
	nodes   map[string]Node       // they stay: there are no more of them than hosts
	hosts   map[sdk.Handle]string // where each process is
}

// NewProcesses follows those whose run-time a tunlet takes.
func NewProcesses(takes func(Runtime) bool, newNode func(host string) Node) *Processes {
	return &Processes{newNode: newNode, takes: takes, nodes: map[string]Node{}, hosts: map[sdk.Handle]string{}}
}

// ProcessStarted begins to follow a process as soon as it has an OpenMP run-time.
func (t *Processes) ProcessStarted(h *sdk.Host, p sdk.Process) {
	if _, known := t.hosts[p.Handle]; known {
		return
	}
	runtime, ok := Of(p)
	if !ok || !t.takes(runtime) {
		h.Want(p.Handle, sdk.NoSamples())
		return
	}
	if len(t.hosts) >= maxProcesses {
		h.PassOver(p.Handle, maxProcesses)
		return
	}
	n := t.nodes[p.Host]
	if n == nil {
		n = t.newNode(p.Host)
		t.nodes[p.Host] = n
	}
	t.hosts[p.Handle] = p.Host
	n.Joined(p.Handle, runtime)
	h.Want(p.Handle, sdk.SamplesFrom(Waits()))
}

// of returns the node of a process; nil if it is not followed.
func (t *Processes) of(p sdk.Handle) Node {
	if host, ok := t.hosts[p]; ok {
		return t.nodes[host]
	}
	return nil
}

// ProcessEnded forgets it.
func (t *Processes) ProcessEnded(h *sdk.Host, end sdk.ProcessEnd) {
	if n := t.of(end.Handle); n != nil {
		delete(t.hosts, end.Handle)
		n.Left(h, end.Handle)
	}
}

// HandleSamples looks for the symptom.
func (t *Processes) HandleSamples(h *sdk.Host, s sdk.Samples) {
	heard := map[string]bool{}
	for _, sample := range s.Items {
		if n := t.of(sample.Process); n != nil {
			n.Sample(h, sample)
			heard[t.hosts[sample.Process]] = true
		}
	}
	for _, host := range slices.Sorted(maps.Keys(heard)) {
		t.nodes[host].Look(h)
	}
}

// HandleAggregates counts regions.
func (t *Processes) HandleAggregates(h *sdk.Host, a sdk.Aggregates) {
	if a.Seconds() == 0 {
		return
	}
	counted := map[string][]sdk.Aggregate{}
	for _, item := range a.Items {
		if host, ok := t.hosts[item.Process]; ok {
			counted[host] = append(counted[host], item)
		}
	}
	for _, p := range a.Unknown {
		delete(counted, t.hosts[p]) // with this one's there would be more
	}
	for _, host := range slices.Sorted(maps.Keys(counted)) {
		t.nodes[host].Count(h, a, counted[host])
	}
}

// PointChanged hears whether regions can be counted.
func (t *Processes) PointChanged(_ *sdk.Host, c sdk.PointChange) {
	if n := t.of(c.Process); n != nil && !c.Placed && !c.Removed && !c.Off {
		n.Refused(c.Reason)
	}
}

// Evaluate waits while no region is begun: there is no progress to compare.
// Otherwise the measured objective decides.
func (*Processes) Evaluate(e sdk.Evaluation) (sdk.Verdict, string) {
	return e.ByMeasurement("parallel regions")
}

// ProposalChanged follows its proposals.
func (t *Processes) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	if !c.State.Final() {
		return
	}
	if p := c.Earlier; p != nil {
		for _, change := range p.Changes {
			if n := t.of(change.Process); n != nil {
				n.TakeUp(h, p, change)
			}
		}
		return
	}
	for _, host := range slices.Sorted(maps.Keys(t.nodes)) {
		if t.nodes[host].Ended(h, c) {
			return
		}
	}
}
