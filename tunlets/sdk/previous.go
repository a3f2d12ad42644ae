// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"maps"
	"time"
)

// previousLimit bounds what a Previous remembers.
const previousLimit = 8192

// Previous remembers the last reading of each of many things, as the ground for
// rates: details come in turn, and not each thread or socket in each round. The
// zero value remembers nothing. Not safe for use by several goroutines.
type Previous[K comparable, V any] struct {
	last map[K]reading[V]
}

type reading[V any] struct {
	at    time.Time
	value V
}

// Swap takes a reading and returns the one before it with the time between
// both; false if there was none, or none that is older.
func (p *Previous[K, V]) Swap(key K, at time.Time, value V) (before V, elapsed time.Duration, ok bool) {
	if p.last == nil {
		p.last = make(map[K]reading[V])
	}
	old, known := p.last[key]
	if !known && len(p.last) >= previousLimit {
		return before, 0, false
	}
	p.last[key] = reading[V]{at, value}
	if elapsed = at.Sub(old.at); !known || elapsed <= 0 {
		return before, 0, false
	}
	return old.value, elapsed, true
}

// Expire forgets what was read last before a time: it is gone.
func (p *Previous[K, V]) Expire(before time.Time) {
	maps.DeleteFunc(p.last, func(_ K, r reading[V]) bool { return r.at.Before(before) })
}
