// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "mpi-progress"

// maxRanks bounds the ranks that are followed at one time.
const maxRanks = 4096

// Tunlet follows the MPI ranks of a session. Made by New.
type Tunlet struct {
	nodes map[string]*node
	ranks map[sdk.Handle]*node // the node that each rank is on

	sequence int // of proposals: a node that comes back may have one in force elsewhere

	looks looks

	series []*series // objectives of several nodes together
	joint  *series   // that of all whose calls are counted; nil: fewer than two
	apart  bool      // a change of several nodes could not be made
}

// New makes the tunlet.
func New() sdk.Tunlet {
	return &Tunlet{nodes: map[string]*node{}, ranks: map[sdk.Handle]*node{}, looks: looks{}}
}

// Describe says what the tunlet is.
func (*Tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: Name, Version: "1",
		Summary: "makes waiting MPI ranks yield their CPU while there are more ranks than CPUs",
		Objective: sdk.Objective{
			Name: "mpi_calls_per_second", Unit: "1/s",
			Description: "communication calls per second of all ranks of a node, or of several nodes that are changed together; a time step makes the same number of them " +
				"however the ranks wait, so their rate stands for the program's speed",
		},
		Knobs:    knobs(),
		MaxTries: maxFailures, MinGain: 0.05,
		Wake: wakes(),
	}
}

// wakes for ranks that have to wait for a CPU: what is changed helps nobody
// else.
func wakes() (list []sdk.Wake) {
	for _, object := range libraries() {
		list = append(list, sdk.Wake{Object: object, Levels: []sdk.Level{crowdedRank()}})
	}
	return list
}

// ProcessStarted begins to follow a process as soon as it has an MPI library,
// and counts its calls, so that there is a baseline when trouble comes.
func (t *Tunlet) ProcessStarted(h *sdk.Host, p sdk.Process) {
	l := libraryOf(p)
	if n := t.ranks[p.Handle]; n != nil && l != noMPI {
		r := n.ranks[p.Handle]
		r.library, r.object = l, objectOf(p)
		if p.CPUsAllowed > 0 {
			r.cpus = float64(p.CPUsAllowed)
		}
		n.attend(h)
		return
	}
	if l == noMPI {
		h.Want(p.Handle, sdk.NoSamples())
		return
	}
	if len(t.ranks) >= maxRanks {
		h.PassOver(p.Handle, maxRanks)
		return
	}
	h.Want(p.Handle, sdk.AllSamples())
	n := t.nodes[p.Host]
	if n == nil {
		n = newNode(p.Host)
		t.nodes[p.Host] = n
	}
	r := newRank(p, l)
	n.ranks[p.Handle], t.ranks[p.Handle] = r, n
	n.attend(h)
}

// ProcessEnded forgets it, and with the last rank that a proposal changed that.
func (t *Tunlet) ProcessEnded(_ *sdk.Host, end sdk.ProcessEnd) {
	n := t.ranks[end.Handle]
	if n == nil {
		return
	}
	id := n.ranks[end.Handle].proposal
	delete(t.ranks, end.Handle)
	delete(n.ranks, end.Handle)
	if id != "" && len(n.changedBy(id)) == 0 {
		delete(n.proposals, id)
		t.dropJudged(id)
	}
	if len(n.ranks) == 0 {
		t.dropNode(n)
	}
}

// HandleSamples looks for crowded nodes, and for room.
func (t *Tunlet) HandleSamples(h *sdk.Host, s sdk.Samples) {
	touched := map[*node]bool{}
	for _, sample := range s.Items {
		if n := t.ranks[sample.Process]; n != nil {
			n.ranks[sample.Process].sample(sample)
			touched[n] = true
		}
	}
	heard := inOrder(maps.Keys(touched))
	for _, n := range heard {
		n.attend(h)
		n.observe(h)
	}
	t.looks.take(h, t)
	t.decide(h, heard)
}

// sorted lists the nodes in a fixed order. There may be a thousand, and a batch
// is about one: what comes with every batch does not go through them all.
func (t *Tunlet) sorted() []*node { return inOrder(maps.Values(t.nodes)) }

func inOrder(nodes iter.Seq[*node]) []*node {
	return slices.SortedFunc(nodes, func(a, b *node) int { return strings.Compare(a.host, b.host) })
}

// HandleAggregates reports the objective of the node that the batch comes from,
// and with it that of several nodes.
func (t *Tunlet) HandleAggregates(h *sdk.Host, a sdk.Aggregates) {
	if a.Seconds() == 0 {
		return
	}
	counts := map[*node]uint64{}
	for _, item := range a.Items {
		n := t.ranks[item.Process]
		if n == nil {
			continue
		}
		counts[n] += item.Count
		n.ranks[item.Process].hits += item.Count
	}
	for _, p := range a.Unknown {
		if n := t.ranks[p]; n != nil {
			delete(counts, n) // with this rank's calls there would be more
		}
	}
	for _, n := range inOrder(maps.Keys(counts)) {
		t.report(h, n, counts[n], a.Seconds())
	}
}

// PointChanged hears whether calls can be counted, and at what cost.
func (t *Tunlet) PointChanged(h *sdk.Host, c sdk.PointChange) {
	if n := t.ranks[c.Process]; n != nil {
		n.placed(h, n.ranks[c.Process], c)
	}
}

// Evaluate waits while no rank communicates: there is no progress to compare.
// Otherwise the measured objective decides.
func (*Tunlet) Evaluate(e sdk.Evaluation) (sdk.Verdict, string) {
	return e.ByMeasurement("MPI calls")
}

// ProposalChanged follows its proposals.
func (t *Tunlet) ProposalChanged(h *sdk.Host, c sdk.ProposalChange) {
	if c.Earlier != nil {
		t.takeUp(h, c)
		return
	}
	t.looks.hear(h, t, c)
	if !c.State.Final() {
		return
	}
	nodes := 0
	for _, n := range t.sorted() {
		if n.ended(h, c) {
			nodes++
		}
	}
	t.settled(h, c, nodes)
}
