// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// line is the proposals on their way, those that wait and those that are in force, in
// the order in which they have their turns.
type line struct {
	active []*proposal
	known  knowledge
	// shared says that one objective judges all: two experiments would be measured as one.
	shared bool
}

// snapshot returns a copy of the line, which may change while somebody goes along it.
func (l *line) snapshot() []*proposal { return slices.Clone(l.active) }

// matching is a snapshot of those that match: mostly few, since most are kept.
func (l *line) matching(match func(p *proposal) bool) (out []*proposal) {
	for _, p := range l.active {
		if match(p) {
			out = append(out, p)
		}
	}
	return out
}

// enqueue has a proposal wait for its turn: behind all others, or before the first
// one that waits too and is not known to help.
func (l *line) enqueue(p *proposal) {
	at := len(l.active)
	if l.known.helped(p) {
		for i, q := range l.active {
			if q.state == StateWaiting && !l.known.helped(q) {
				at = i
				break
			}
		}
	}
	l.active = append(l.active[:at:at], append([]*proposal{p}, l.active[at:]...)...)
}

// join adds a proposal that waits for nobody.
func (l *line) join(p *proposal) { l.active = append(l.active, p) }

// leave takes a proposal out.
func (l *line) leave(p *proposal) {
	if i := slices.Index(l.active, p); i >= 0 {
		l.active = append(l.active[:i:i], l.active[i+1:]...)
	}
}

// open counts the proposals of p's tunlet that are tried or wait for their turn, and all of
// them in its processes.
func (l *line) open(p *proposal) (n int) {
	for _, q := range l.active {
		if q.tunlet == p.tunlet && (q.experiment() || q.inLine() || q.meets(p)) {
			n++
		}
	}
	return n
}

// postpone has time that passed count for nobody.
func (l *line) postpone(by time.Duration) {
	for _, p := range l.active {
		p.postpone(by)
	}
}

// blocks reports whether another experiment, or one that was proposed
// earlier, stands in the way of p.
func (l *line) blocks(p *proposal) bool {
	for i, q := range l.active {
		if q == p {
			return slices.ContainsFunc(l.active[i+1:], func(q *proposal) bool {
				return q.experiment() && l.overlap(p, q)
			})
		}
		if (q.experiment() || q.inLine()) && l.overlap(p, q) {
			return true
		}
	}
	return false
}

// overlap reports whether two proposals would be measured as one.
func (l *line) overlap(p, q *proposal) bool { return l.shared || q.overlaps(p) }

// disturbs reports whether another experiment spoils the samples of p.
func (l *line) disturbs(p *proposal) bool {
	return slices.ContainsFunc(l.active, func(q *proposal) bool {
		return q != p && q.experiment() && (l.overlap(p, q) || q == p.whole)
	})
}

// deciding reports whether a proposal waits for samples: its own baseline, or
// those that judge it.
func (l *line) deciding() bool {
	return slices.ContainsFunc(l.active, func(p *proposal) bool {
		return p.state == StateWaiting || p.experiment()
	})
}

// held returns the changes that are to stay in force as things stand: those
// that were kept, those that are being judged, and those that wait for the others of
// their proposals to be made.
func (l *line) held() (out []Held) {
	for _, p := range l.active {
		switch p.state {
		case StateApplying, StateJudging, StateAsking, StateKept:
		default:
			continue
		}
		for _, ch := range p.changes {
			if ch.inForce() {
				out = append(out, p.held(ch))
			}
		}
	}
	return out
}

// kept returns the ids of the changes that were judged good, and that nobody takes back.
func (l *line) kept() (ids []string) {
	for _, p := range l.active {
		if !p.good() {
			continue
		}
		for _, ch := range p.changes {
			if ch.outcome != attunev1.Outcome_OUTCOME_GONE {
				ids = append(ids, ch.spec.GetId())
			}
		}
	}
	return ids
}
