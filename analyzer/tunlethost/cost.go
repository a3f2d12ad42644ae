// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"sync"
	"time"
)

// Cost is what tunlets have taken so far.
type Cost struct {
	// CPU is the CPU time of all their processes, also of those that have ended
	// and of those that were only asked what they are; of processes that other
	// hosts use as well, that of the calls of this one.
	CPU time.Duration
	// PeakRSS is the greatest resident memory of all processes that were there at
	// a time, bytes: the sum of what each of them has had at most. Processes that
	// other hosts use as well do not count.
	PeakRSS uint64
}

// account adds up what processes take. Safe for use by several goroutines.
type account struct {
	mu    sync.Mutex // leaf lock; guards what follows
	ended time.Duration
	live  map[*process]usage
	peak  uint64
}

func newAccount() *account { return &account{live: map[*process]usage{}} }

// note takes down what a process that runs has taken.
func (a *account) note(p *process, u usage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p.accounted {
		return // it has ended while it was measured
	}
	a.live[p] = u
	sum := uint64(0)
	for _, u := range a.live {
		sum += u.peak
	}
	a.peak = max(a.peak, sum)
}

// close takes down what a process had taken when it ended.
func (a *account) close(p *process, cpu time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.live, p)
	p.accounted = true
	a.ended += cpu
}

// charge takes down what a tunlet has taken in a process that is shared.
func (a *account) charge(cpu time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended += cpu
}

// total returns what all processes have taken. Those that run count as they were
// measured last.
func (a *account) total() Cost {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := Cost{CPU: a.ended, PeakRSS: a.peak}
	for _, u := range a.live {
		c.CPU += u.cpu
	}
	return c
}
