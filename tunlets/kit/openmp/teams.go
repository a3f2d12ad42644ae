// SPDX-License-Identifier: Apache-2.0

package openmp

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// firstHold after a withdrawal; it doubles up to lastHold, so that programs at the
	// edge do not go to and fro.
	firstHold = time.Second
	lastHold  = 64 * time.Second
	// MaxTries is how many changes may come to nothing on one node.
	MaxTries = 3
)

// Member is what a tunlet knows of one team: a pointer to a struct that embeds
// [Team].
type Member interface {
	comparable
	// Common is the embedded part.
	Common() *Team
	// Rest wants no more samples than there is use for now.
	Rest(h *sdk.Host)
}

// State is what goes on at a node.
type State uint8

// The states.
const (
	Quiet    State = iota // no team has the symptom
	Counting              // regions are counted, for a baseline
	Judged                // a proposal is on its way
)

// Teams are those of one node, on the way from the symptom to a proposal and to
// what became of it. A tunlet's [Node] embeds it. For one goroutine.
type Teams[M Member] struct {
	// State, and since when.
	State State
	Since time.Time
	// Members are the teams that Counting and Judged are about.
	Members []M

	tunlet, host string
	teams        map[sdk.Handle]M
	until        time.Time // Quiet: not before this
	backoff      sdk.Backoff
	hold         time.Duration
	values       int       // of the objective since counting began
	roomAt       time.Time // since when a kept change could be taken back; zero: it could not
	failures     int
	sequence     int
	proposal     string // Judged: its id
}

// NewTeams is a node without teams.
func NewTeams[M Member](tunlet, host string) *Teams[M] {
	return &Teams[M]{tunlet: tunlet, host: host, teams: map[sdk.Handle]M{}}
}

// Join begins to follow a team.
func (n *Teams[M]) Join(m M) { n.teams[m.Common().Handle] = m }

// Of is the team of a process that has joined.
func (n *Teams[M]) Of(p sdk.Handle) M { return n.teams[p] }

// Sorted lists the teams in a fixed order, so that a replay says the same.
func (n *Teams[M]) Sorted() []M {
	out := make([]M, 0, len(n.teams))
	for _, h := range slices.Sorted(maps.Keys(n.teams)) {
		out = append(out, n.teams[h])
	}
	return out
}

// Sample takes a sample of a process.
func (n *Teams[M]) Sample(h *sdk.Host, s sdk.Sample) {
	m := n.teams[s.Process]
	m.Common().Window.Add(s)
	if n.Due(h) {
		m.Rest(h)
	}
}

// Due says whether the symptom counts now.
func (n *Teams[M]) Due(h *sdk.Host) bool { return n.State == Quiet && !h.Now().Before(n.until) }

// Begin counts regions, of members to be changed and maybe of others.
func (n *Teams[M]) Begin(h *sdk.Host, members []M) {
	n.Members, n.values = members, 0
	n.enter(Counting, h.Now())
}

func (n *Teams[M]) enter(s State, now time.Time) { n.State, n.Since = s, now }

// Takes says whether regions of an interval count: some were begun in it, or
// before. What came before the first one is no baseline.
func (n *Teams[M]) Takes(a sdk.Aggregates, regions uint64) bool {
	early := n.State == Quiet || n.State == Counting && a.From.Before(n.Since)
	return !early && (n.values > 0 || regions > 0)
}

// Report reports the objective of an interval; true when enough of them are a
// baseline.
func (n *Teams[M]) Report(h *sdk.Host, regions uint64, seconds float64, enough int) bool {
	n.values++
	h.Objective(n.scope(), float64(regions)/seconds)
	return n.State == Counting && n.values >= enough
}

func (n *Teams[M]) scope() string { return "node/" + n.host }

// Counted says whether regions have been seen since Begin.
func (n *Teams[M]) Counted() bool { return n.values > 0 }

// Propose proposes a change of all members.
func (n *Teams[M]) Propose(h *sdk.Host, p sdk.Proposal, change func(M) sdk.Change) {
	n.sequence++
	n.proposal = fmt.Sprintf("%s-%s-%d", n.tunlet, n.host, n.sequence)
	p.ID, p.Scope = n.proposal, n.scope()
	for _, m := range n.Members {
		m.Common().Proposal = n.proposal
		p.Changes = append(p.Changes, change(m))
	}
	n.enter(Judged, h.Now())
	h.Propose(p)
}

// TakeUp goes on where the tunlet was when it had kept a proposal: the team is looked after,
// and spared.
func (n *Teams[M]) TakeUp(h *sdk.Host, p *sdk.Proposal, c sdk.Change) {
	n.sequence = max(n.sequence, p.Number())
	n.teams[c.Process].Common().Proposal = p.ID
	h.Want(c.Process, sdk.AllSamples())
}

// Ended hears what became of a proposal; false if it is none of this node. One whose processes have
// ended did not fail.
func (n *Teams[M]) Ended(h *sdk.Host, c sdk.ProposalChange) bool {
	if n.proposal != c.Proposal && len(n.changedBy(c.Proposal)) == 0 {
		return false
	}
	if c.State != sdk.Kept {
		n.forget(c.Proposal)
	}
	if c.Proposal == n.proposal { // not an earlier one, that had been kept
		n.Calm(h)
		if c.State == sdk.Kept {
			n.backoff.Reset()
		} else if len(n.Members) > 0 {
			n.failed(h, c)
		}
	}
	return true
}

func (n *Teams[M]) failed(h *sdk.Host, c sdk.ProposalChange) {
	n.failures++
	n.wait(h, sdk.RetryPause)
	if c.State == sdk.Failed || c.State == sdk.Advised || n.failures >= MaxTries {
		n.GiveUp(h)
	}
}

// GiveUp leaves the members alone: what cannot be changed in them, or does not
// help them, says nothing about others.
func (n *Teams[M]) GiveUp(h *sdk.Host) {
	n.failures = 0
	for _, m := range n.Members {
		m.Common().GaveUp = true
		m.Rest(h)
	}
}

// Calm gives the measure points back: nothing is judged any more.
func (n *Teams[M]) Calm(h *sdk.Host) {
	for _, m := range n.Sorted() {
		m.Common().Unwatch(h)
		m.Rest(h)
	}
	n.proposal = ""
	n.enter(Quiet, h.Now())
}

// FalseAlarm waits, longer each time, before the symptom counts again.
func (n *Teams[M]) FalseAlarm(h *sdk.Host) {
	n.Calm(h)
	n.wait(h, n.backoff.Next())
}

// wait lets the symptom not count for a while, or longer where it does not already.
func (n *Teams[M]) wait(h *sdk.Host, d time.Duration) {
	if until := h.Now().Add(d); until.After(n.until) {
		n.until = until
	}
}

// Kept lists the ids of proposals that were kept, and the teams that each changed.
func (n *Teams[M]) Kept() (ids []string, teams map[string][]M) {
	teams = map[string][]M{}
	for _, m := range n.Sorted() {
		if id := m.Common().Proposal; id != "" && id != n.proposal {
			teams[id] = append(teams[id], m)
		}
	}
	return slices.Sorted(maps.Keys(teams)), teams
}

// Release withdraws kept proposals when there has been room for it for so long.
// It is told again and again for which of them there is. After each time, the symptom
// must wait longer to count again.
func (n *Teams[M]) Release(h *sdk.Host, room []string, lasting time.Duration, reason string) {
	switch {
	case len(room) == 0:
		n.roomAt = time.Time{}
	case n.roomAt.IsZero():
		n.roomAt = h.Now()
	case h.Now().Sub(n.roomAt) >= lasting:
		for _, id := range room {
			h.Withdraw(id, reason)
			n.forget(id)
		}
		n.roomAt = time.Time{}
		n.hold = min(max(firstHold, 2*n.hold), lastHold)
		n.wait(h, n.hold)
	}
}

// forget forgets what a proposal changed: it is taken back.
func (n *Teams[M]) forget(proposal string) {
	for _, m := range n.changedBy(proposal) {
		m.Common().Proposal = ""
	}
}

// changedBy lists the teams that a proposal changed, in a fixed order.
func (n *Teams[M]) changedBy(proposal string) []M {
	return slices.DeleteFunc(n.Sorted(), func(m M) bool { return m.Common().Proposal != proposal })
}

// Leave forgets a team whose process has ended, and returns it. Of those that come after the last
// one nothing is known.
func (n *Teams[M]) Leave(h *sdk.Host, p sdk.Handle) M {
	gone := n.teams[p]
	gone.Common().Unwatch(h)
	delete(n.teams, p)
	n.Members = slices.DeleteFunc(n.Members, func(m M) bool { return m == gone })
	if len(n.teams) == 0 {
		n.backoff.Reset()
	}
	return gone
}
