// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// baseline is how many objective samples with progress there must be
	// before a proposal.
	baseline = 5
	// joinPatience is how long a rank may take to its first MPI call before
	// the others are changed without waiting for it. Open MPI sets the
	// variable itself at the end of MPI_Init, so an earlier write is lost.
	joinPatience = 10 * time.Second
	// dearNanos is the cost of a hit from which measure points are not kept
	// in a program that has no trouble.
	dearNanos = 1000

	// roomFor is how long there must be room before changes are taken back,
	// and idleFor how long when the ranks are still there but rest.
	roomFor = time.Second
	idleFor = 5 * time.Second
	// firstHold is how long trouble must last to be recognised again after a
	// withdrawal; it doubles up to lastHold, so that a program at the edge
	// does not flap.
	firstHold = time.Second
	lastHold  = 64 * time.Second
	// callIntervals is over how many intervals calls are averaged: they may
	// come in bursts.
	callIntervals = 20
	// answer is how long measure points may take to be placed.
	answer = 10 * time.Second
	// maxFailures bounds the proposals that came to nothing.
	maxFailures = 3
)

// inForce is a proposal that changed ranks of a node, or is on its way.
type inForce struct {
	judged bool
	joint  bool // other nodes' ranks, too
	scope  string
}

// trouble is what there is to change on a node, while it is due.
type trouble struct {
	ranks   []*rank
	crowd   crowd
	blocked float64 // see crowd.blocked
}

// pace is how often the ranks of a node call MPI.
type pace struct {
	intervals int       // with MPI calls
	calls     []float64 // per second, of the latest intervals
}

// count takes the calls of one interval.
func (p *pace) count(calls uint64, seconds float64) {
	if calls > 0 {
		p.intervals++
	}
	if len(p.calls) == callIntervals {
		p.calls = p.calls[:copy(p.calls, p.calls[1:])]
	}
	p.calls = append(p.calls, float64(calls)/seconds)
}

// latest is the calls per second of the latest interval.
func (p *pace) latest() float64 {
	if len(p.calls) == 0 {
		return 0
	}
	return p.calls[len(p.calls)-1]
}

// mean is the calls per second of the latest intervals together.
func (p *pace) mean() (mean float64) {
	for _, c := range p.calls {
		mean += c / float64(len(p.calls))
	}
	return mean
}

// node knows the ranks of one node, and whether they are in trouble.
type node struct {
	host  string
	ranks map[sdk.Handle]*rank

	pace
	crowdedAt time.Time // since when it is crowded; zero: it is not
	roomAt    time.Time // since when there is room; zero: there is not
	hold      time.Duration
	until     time.Time // no proposal before
	trouble   trouble
	dueAt     time.Time // since when a change is due; zero: it is not

	proposals map[string]inForce
	failures  int
	dear      bool            // measure points cost much here
	looked    map[string]bool // proposals whose calls are looked at now
	refusal   string          // why a measure point was refused, the latest
	remarked  map[string]bool
}

func newNode(host string) *node {
	return &node{
		host: host, ranks: map[sdk.Handle]*rank{},
		proposals: map[string]inForce{}, looked: map[string]bool{}, remarked: map[string]bool{},
	}
}

// scope of the objective: all ranks of the node together.
func (n *node) scope() string { return "node/" + n.host }

// sorted lists the ranks in a fixed order, so that a replay says the same.
func (n *node) sorted() []*rank {
	out := make([]*rank, 0, len(n.ranks))
	for _, h := range slices.Sorted(maps.Keys(n.ranks)) {
		out = append(out, n.ranks[h])
	}
	return out
}

// remark says a sentence once.
func (n *node) remark(h *sdk.Host, format string, arguments ...any) {
	if !n.remarked[format] {
		n.remarked[format] = true
		h.Remark(0, "node %s: "+format, append([]any{n.host}, arguments...)...)
	}
}

// crowd sums up the ranks; false while a rank's load is not known yet.
func (n *node) crowd() (c crowd, known bool) {
	known = true
	for _, r := range n.sorted() {
		l, ok := r.load()
		if !ok {
			known = false
			continue
		}
		c.add(l)
	}
	return c, known
}

// singles says that the ranks are those of as many jobs, which all have the number 0:
// none of them ever waits for another one.
func (n *node) singles() bool {
	for _, r := range n.ranks {
		if r.number != 0 {
			return false
		}
	}
	return len(n.ranks) > 1
}

// attend has the ranks watched, before there is trouble where that is cheap, as
// long as trouble is possible: while there are more of them than CPUs, or
// changes to be taken back. Otherwise they are left alone.
func (n *node) attend(h *sdk.Host) {
	const rounding = 1e-9 // present is a sum of fractions
	if n.present() > 1+rounding && !n.singles() || len(n.proposals) > 0 || len(n.looked) > 0 {
		for _, r := range n.sorted() {
			r.wake(h)
		}
		if !n.dear {
			watchRanks(h, n)
		}
		return
	}
	n.unwatch(h)
	for _, r := range n.sorted() {
		r.sleep(h)
	}
}

// observe updates, after a round of samples, since when the node is crowded
// or has room.
func (n *node) observe(h *sdk.Host) {
	c, known := n.crowd()
	now := h.Now()
	if !c.crowded() || len(n.proposals) == 0 && !c.spins() {
		n.crowdedAt = time.Time{}
	} else if n.crowdedAt.IsZero() {
		n.crowdedAt = now
	}
	if !known || c.pressure > 1 {
		n.roomAt = time.Time{}
	} else if n.roomAt.IsZero() {
		n.roomAt = now
	}
	n.withdraw(h)
}

// withdraw takes back what is in force when there has been room for long
// enough.
func (n *node) withdraw(h *sdk.Host) {
	if len(n.proposals) == 0 || n.roomAt.IsZero() {
		return
	}
	needed, reason := idleFor, "the ranks leave room for one another"
	if n.present() <= 1 {
		needed, reason = roomFor, "no more ranks than CPUs"
	}
	room := h.Now().Sub(n.roomAt)
	if room < needed {
		return
	}
	reason = fmt.Sprintf("%s since %v: yielding would only cost", reason, room.Round(time.Millisecond))
	for _, id := range slices.Sorted(maps.Keys(n.proposals)) {
		if changed := n.changedBy(id); !n.proposals[id].joint {
			h.Withdraw(id, reason)
		} else if len(changed) > 0 {
			h.WithdrawIn(id, changed, reason) // there may be no room on the other nodes
		}
	}
	n.release()
	n.hold = min(max(firstHold, 2*n.hold), lastHold)
	n.until = h.Now().Add(n.hold)
}

// changedBy lists the ranks that a proposal changed.
func (n *node) changedBy(id string) (processes []sdk.Handle) {
	for _, r := range n.sorted() {
		if r.proposal == id {
			processes = append(processes, r.handle)
		}
	}
	return processes
}

// present is the ranks per CPU, busy or not.
func (n *node) present() float64 {
	var pressure float64
	for _, r := range n.ranks {
		pressure += 1 / max(1, r.cpus)
	}
	return pressure
}

// release forgets the proposals: the ranks are as they were.
func (n *node) release() {
	clear(n.proposals)
	for _, r := range n.ranks {
		r.proposal = ""
	}
}

// judging says that a proposal of this node is on its way.
func (n *node) judging() bool {
	for _, p := range n.proposals {
		if !p.judged {
			return true
		}
	}
	return false
}

// ended hears of the end of a proposal, or that it is kept. It reports whether
// it was one of this node.
func (n *node) ended(h *sdk.Host, c sdk.ProposalChange) bool {
	p, ours := n.proposals[c.Proposal]
	if !ours {
		return false
	}
	if c.State == sdk.Kept {
		p.judged = true
		n.proposals[c.Proposal] = p
		return true
	}
	delete(n.proposals, c.Proposal)
	for _, r := range n.ranks {
		if r.proposal == c.Proposal {
			r.proposal = ""
		}
	}
	n.failures++
	n.until = h.Now().Add(sdk.RetryPause)
	n.shed(h)
	return true
}

// shed gives dear measure points back while nothing is to be judged or looked at.
func (n *node) shed(h *sdk.Host) {
	if n.dear && !n.judging() && len(n.looked) == 0 {
		n.unwatch(h)
	}
}

// watchRanks has the calls of the ranks of a node counted that can be changed.
func watchRanks(h *sdk.Host, n *node) {
	for _, r := range n.sorted() {
		if r.library.hasKnob() {
			r.watch(h)
		}
	}
}

// unwatch gives the measure points back, and with them the baseline.
func (n *node) unwatch(h *sdk.Host) {
	n.pace = pace{}
	for _, r := range n.sorted() {
		r.unwatch(h)
	}
}

// placed hears of a measure point.
func (n *node) placed(h *sdk.Host, r *rank, c sdk.PointChange) {
	r.off = c.Off
	if !c.Placed {
		r.placed = false
		if !c.Removed {
			n.refusal = c.Reason
		}
		return
	}
	r.placed = true
	if c.CostNanos > dearNanos {
		n.dear = true
		if n.crowdedAt.IsZero() {
			n.shed(h)
		}
	}
}
