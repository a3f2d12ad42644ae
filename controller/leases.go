// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"
)

// leases says until when changes stay in force without word from the Analyzer.
type leases struct {
	standard time.Duration

	mu    sync.Mutex // guards until
	until map[string]lease
}

type lease struct {
	length time.Duration
	ends   time.Time
	owed   bool // to be undone, whatever the Analyzer says from now on
}

func newLeases(standard time.Duration) *leases {
	return &leases{standard: standard, until: make(map[string]lease)}
}

// add starts the lease of a change; length 0 means the standard one.
func (l *leases) add(change string, length time.Duration, now time.Time) {
	if length <= 0 {
		length = l.standard
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until[change] = lease{length: length, ends: now.Add(length)}
}

// renew starts all leases anew.
func (l *leases) renew(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for change, one := range l.until {
		if !one.owed {
			one.ends = now.Add(one.length)
			l.until[change] = one
		}
	}
}

// owe says that a change is about to be undone. If that fails its lease ends
// once more, even if the Analyzer renews all others.
func (l *leases) owe(change string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until[change] = lease{length: l.standard, ends: now.Add(l.standard), owed: true}
}

// expired returns the changes whose lease has ended, in the order in which
// inForce lists them, which is that to undo them in, and drops the leases of
// changes that are not in force any more. Each comes again after the standard
// lease for as long as it stays in force.
func (l *leases) expired(now time.Time, inForce func() []string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	kept := make(map[string]lease)
	for _, change := range inForce() { // after the lock: a lease begins when its change is in force
		one, ok := l.until[change]
		if !ok {
			continue // begins in a moment
		}
		if now.After(one.ends) {
			out = append(out, change)
			one = lease{length: l.standard, ends: now.Add(l.standard), owed: true}
		}
		kept[change] = one
	}
	l.until = kept
	return out
}
