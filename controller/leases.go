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
		one.ends = now.Add(one.length)
		l.until[change] = one
	}
}

func (l *leases) drop(change string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.until, change)
}

// expired removes and returns the changes whose lease has ended.
func (l *leases) expired(now time.Time) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for change, one := range l.until {
		if now.After(one.ends) {
			out = append(out, change)
			delete(l.until, change)
		}
	}
	return out
}
