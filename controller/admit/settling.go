// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/internal/objfile"
)

// settling looks at processes that are young.
type settling struct {
	ways
	arrivals *arrivals
	door     *door
	library  *library
}

// run looks at young processes when it is time.
func (s *settling) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.arrivals.woken:
		case <-timer.C:
			s.settle(time.Now())
		}
		if next := s.arrivals.next(); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// settle does what is due.
func (s *settling) settle(now time.Time) {
	due := s.arrivals.take(now)
	if due.news {
		s.Outbox.Flush()
	}
	// Placing points may wait for the process, so each has a goroutine.
	for _, attachment := range due.attached {
		s.Go(func() { s.door.takeIn(attachment, false) })
	}
	for _, t := range due.young {
		if t.State() == member.Seen {
			s.Go(func() { s.expect(t) })
		}
	}
	for _, late := range due.late {
		if late.member.State() == member.Seen {
			s.Go(func() { s.awaitGate(late.member, late.rounds) })
		}
	}
}

// expect takes a process in that cannot come to the gate, and gives any other
// the time that it needs.
func (s *settling) expect(t *member.Member) {
	if s.LateLibrary && !s.library.entering.attaches(t.PID()) {
		s.library.expect(t)
		return
	}
	if !s.arrivals.waiting(t.PID()) && s.whyNoPreload(t) != "" {
		s.awaitGate(t, 0)
		return
	}
	s.arrivals.wait(t, gateRounds)
}

// awaitGate takes in a process that does not come to the gate.
func (s *settling) awaitGate(t *member.Member, rounds int) {
	if t.State() != member.Seen {
		return
	}
	if images, err := t.Images(); err == nil && rounds > 0 && (isLoading(images) || slices.ContainsFunc(images, isDMLib)) {
		s.arrivals.wait(t, rounds-1)
		return
	}
	if s.LateLibrary { // it cannot reach the gate, as another user's process
		s.library.takeOutside(t)
		return
	}
	s.outside(t, false, s.whyNoDMLib(t))
}

// isLoading says whether the dynamic loader has not brought anything in yet: what the
// kernel maps is the program and the loader.
func isLoading(images []objfile.Image) bool { return len(images) <= 2 }
