// SPDX-License-Identifier: Apache-2.0

package change

import (
	"slices"
	"sync"
	"time"
)

// leases says until when changes stay in force without word from the Analyzer.
type leases struct {
	standard time.Duration

	mu    sync.Mutex // guards what follows; a leaf lock
	until map[string]lease
	lost  uint64 // how many connections were
}

type lease struct {
	length time.Duration
	ends   time.Time
	owed   bool // to be undone, whatever the Analyzer says from now on
	// unnamed: its connection was lost, and the Analyzer has not said since that
	// it stays.
	unnamed bool
}

func newLeases(standard time.Duration) *leases {
	return &leases{standard: standard, until: make(map[string]lease)}
}

// connection numbers the present connection.
func (l *leases) connection() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost
}

// add starts the lease of a change, which was asked for by a connection; length 0
// means the standard one.
func (l *leases) add(change string, length time.Duration, connection uint64, now time.Time) {
	if length <= 0 {
		length = l.standard
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until[change] = lease{length: length, ends: now.Add(length), unnamed: connection != l.lost}
}

// orphan notes that the connection was lost: what is in force is renewed only
// when it is named.
func (l *leases) orphan() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost++
	for change, one := range l.until {
		one.unnamed = true
		l.until[change] = one
	}
}

// renew starts leases anew: those that are named, or with none all that have
// not to be.
func (l *leases) renew(named []string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for change, one := range l.until {
		meant := slices.Contains(named, change) || len(named) == 0 && !one.unnamed
		if meant && !one.owed {
			one.ends, one.unnamed = now.Add(one.length), false
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
