// SPDX-License-Identifier: Apache-2.0

package controller

import "sync"

// early is what says whether new processes may run past the gate.
type early struct {
	mu    sync.Mutex // guards what follows, and that the gate does as it says
	known bool       // the tracker knows who starts them
	never bool       // some come from elsewhere
}

// lets has new processes run past the gate from now on if nothing has to be in
// place before main, and the kernel tells what they start meanwhile: not before the
// first process is known, and not where a batch system's daemons start some, of
// whose children the kernel tells only when they have come to the gate.
func (e *early) lets(c *Controller) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.apply(c, c.placer.ForAll() > 0)
}

// apply does as is known; points says that some have to be in place before main. The
// caller holds mu.
func (e *early) apply(c *Controller, points bool) {
	c.tracker.Hurry(points)
	if err := c.gate.SetEarly(e.known && !e.never && c.tracker.Sourced() && !points); err != nil {
		c.log.Warn("new processes may not wait for measure points", "error", err)
	}
}

// knows says that the tracker knows a process.
func (e *early) knows(c *Controller) { e.learn(c, &e.known) }

// strange says that a process has come whom the tracker does not know.
func (e *early) strange(c *Controller) { e.learn(c, &e.never) }

// learn takes note of one of the facts, the first time.
func (e *early) learn(c *Controller, fact *bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if *fact {
		return
	}
	*fact = true
	e.apply(c, c.placer.ForAll() > 0)
}

// holds adds a point that is to be in place before main. Once it can be seen, no
// new process runs past the gate.
func (e *early) holds(c *Controller, add func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.apply(c, true)
	add()
}
