// SPDX-License-Identifier: Apache-2.0

package meter

import "sync"

// account is what measuring has cost so far, and what was lost on the way to the
// Analyzer, by stage. The zero value is ready.
type account struct {
	mu  sync.Mutex // a leaf lock
	now totals
}

// totals are the sums of an account.
type totals struct {
	probeNanos float64
	// lostRing, lostSlot, lostBPF and lostQueue are records that were lost in
	// rings, for want of a slot, in the kernel's ring after their process was
	// gone, and in the queue of the event channel or with its connection.
	lostRing, lostSlot, lostBPF, lostQueue uint64
}

// add adds what more there is.
func (a *account) add(more totals) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now.probeNanos += more.probeNanos
	a.now.lostRing += more.lostRing
	a.now.lostSlot += more.lostSlot
	a.now.lostBPF += more.lostBPF
	a.now.lostQueue += more.lostQueue
}

func (a *account) sums() totals {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}
