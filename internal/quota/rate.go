// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"maps"
	"sync"
	"time"
)

// Rate bounds how often each does something.
type Rate[K comparable] struct {
	every time.Duration
	burst time.Duration // as long as it takes to have all of it again

	mu sync.Mutex
	// full is when somebody has all of it again. Who has is not in it, or until it is
	// tidied at size tidyAt.
	full   map[K]time.Time
	tidyAt int
}

// leastTidied is how many are remembered at least.
const leastTidied = 1024

// NewRate returns a Rate of burst at once and one more after each every.
func NewRate[K comparable](burst int, every time.Duration) *Rate[K] {
	return &Rate[K]{every: every, burst: time.Duration(burst) * every, full: make(map[K]time.Time), tidyAt: leastTidied}
}

// Take reports whether somebody may do it once more now, and counts it if so.
func (r *Rate[K]) Take(who K) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	full := r.full[who]
	if full.Before(now) {
		full = now
	}
	full = full.Add(r.every)
	if full.Sub(now) > r.burst {
		return false
	}
	r.full[who] = full
	if len(r.full) > r.tidyAt {
		maps.DeleteFunc(r.full, func(_ K, full time.Time) bool { return full.Before(now) })
		r.tidyAt = max(leastTidied, 2*len(r.full))
	}
	return true
}
