// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"log/slog"
	"sync"

	"github.com/attune-hpc/attune/controller/gate"
	"github.com/attune-hpc/attune/controller/track"
)

// early is what says whether new processes may run past the gate.
type early struct {
	points  func() int // that have to be in place before main
	tracker *track.Tracker
	gate    *gate.Gate
	log     *slog.Logger

	mu    sync.Mutex // guards what follows, and that the gate does as it says
	known bool       // the tracker knows who starts them
	never bool       // some come from elsewhere
}

// lets has new processes run past the gate from now on if nothing has to be in
// place before main, and the kernel tells what they start meanwhile: not before the
// first process is known, and not where a batch system's daemons start some, of
// whose children the kernel tells only when they have come to the gate.
func (e *early) lets() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.apply(e.points() > 0)
}

// apply does as is known; points says that some have to be in place before main. The
// caller holds mu.
func (e *early) apply(points bool) {
	e.tracker.Hurry(points)
	if err := e.gate.SetEarly(e.known && !e.never && e.tracker.Sourced() && !points); err != nil {
		e.log.Warn("new processes may not wait for measure points", "error", err)
	}
}

// knows says that the tracker knows a process.
func (e *early) knows() { e.learn(&e.known) }

// strange says that a process has come whom the tracker does not know.
func (e *early) strange() { e.learn(&e.never) }

// learn takes note of one of the facts, the first time.
func (e *early) learn(fact *bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if *fact {
		return
	}
	*fact = true
	e.apply(e.points() > 0)
}

// holds adds a point that is to be in place before main. Once it can be seen, no
// new process runs past the gate.
func (e *early) holds(add func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.apply(true)
	add()
}
