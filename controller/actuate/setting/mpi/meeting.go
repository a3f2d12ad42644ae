// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"
	"sync"
	"time"
)

// Bounds of the time that ranks stand and wait for others. Whoever comes first
// would wait inside the collective operation anyway, but there it would serve what
// others have sent to it. So it does not stand for long: it enters the call, and
// stands for twice as long the next time.
const (
	firstHold = 10 * time.Millisecond
	mostHold  = 2 * time.Second
)

// meeting brings the ranks of a job to the entry of one and the same call of a
// collective operation, and through steps that they take together there.
//
// A rank is not asked how often it has called: who comes to such a call stands
// there, and when all stand they are at the same one (see [collective]). A rank
// that is already inside the call that another one stands before does not come;
// when those that stand have gone on, all meet at the next call.
type meeting struct {
	size int

	mu      sync.Mutex // guards what follows
	round   int
	here    int // stand in this round
	opened  time.Time
	hold    time.Duration
	met     bool
	arrived map[int]int // by step: ranks that have taken it
	failed  error       // the first reason why nothing comes of it
}

// standing is a rank that stands ([inject.Visit]).
type standing interface {
	// Wait returns when it is ready, with an error when the rank has ended before.
	Wait(ready func() bool) error
}

func newMeeting(size int) *meeting {
	return &meeting{size: size, hold: firstHold, arrived: make(map[int]int)}
}

// fail ends the meeting, for all.
func (m *meeting) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed == nil {
		m.failed = err
	}
}

// failure is why nothing comes of it; nil: something may.
func (m *meeting) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}

// errGoOn says that a rank does not meet the others at the call that it stands at.
var errGoOn = errors.New("not all ranks have come")

// come returns nil when all ranks stand, errGoOn if this one is to go on.
func (m *meeting) come(v standing) error {
	m.mu.Lock()
	if m.here++; m.here == 1 {
		m.opened = time.Now()
	}
	m.met = m.met || m.here == m.size
	round := m.round
	m.mu.Unlock()
	var result error
	err := v.Wait(func() (over bool) {
		over, result = m.look(round, time.Now())
		return over
	})
	if err != nil {
		m.fail(err)
		return err
	}
	return result
}

// look says whether the wait of a rank that came in a round is over, and how.
func (m *meeting) look(round int, now time.Time) (over bool, result error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.failed != nil:
		return true, m.failed
	case m.met:
		return true, nil
	case m.round == round && now.Sub(m.opened) > m.hold:
		m.round, m.here, m.hold = m.round+1, 0, min(2*m.hold, mostHold)
	}
	return m.round != round, errGoOn
}

// step is taken by every rank, with what went wrong in it. It returns when all have
// taken it, or something did. The last one does what is to be done between this step
// and the next, before anybody goes on.
func (m *meeting) step(v standing, number int, problem error, between func() error) error {
	m.mu.Lock()
	m.arrived[number]++
	if problem != nil && m.failed == nil {
		m.failed = problem
	}
	if m.failed == nil && m.arrived[number] == m.size && between != nil {
		m.failed = between()
	}
	m.mu.Unlock()
	err := v.Wait(func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.failed != nil || m.arrived[number] == m.size
	})
	if err != nil {
		m.fail(err)
		return err
	}
	return m.failure()
}
