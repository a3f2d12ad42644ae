// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/beat"
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
func (r *Rate[K]) Take(who K) bool { return r.TakeMany(who, 1) }

// TakeMany is Take of so many at once, all or none.
func (r *Rate[K]) TakeMany(who K, many int) bool {
	_, ok := r.reserve(who, time.Duration(many)*r.every, 0)
	return ok
}

// Wait has somebody who does it too often wait until they may do it once more, and counts
// it. Who would wait longer than most is refused after that time with false, as is one
// whose ctx ends: that is what slows those down who ask again and again.
func (r *Rate[K]) Wait(ctx context.Context, who K, most time.Duration) bool {
	wait, ok := r.reserve(who, r.every, most)
	return (wait <= 0 || beat.Pause(ctx, min(wait, most))) && ok
}

// reserve counts something of somebody's that takes cost, and returns how long they have
// to wait before; false, and nothing is counted, if that is more than most.
func (r *Rate[K]) reserve(who K, cost, most time.Duration) (wait time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	full := r.full[who]
	if full.Before(now) {
		full = now
	}
	full = full.Add(cost)
	if wait = full.Sub(now) - r.burst; wait > most {
		return wait, false
	}
	r.full[who] = full
	if len(r.full) > r.tidyAt {
		maps.DeleteFunc(r.full, func(_ K, full time.Time) bool { return full.Before(now) })
		r.tidyAt = max(leastTidied, 2*len(r.full))
	}
	return wait, true
}

// Share gives each a share of a processor's time.
type Share[K comparable] struct {
	parts time.Duration
	rate  *Rate[K]
}

// NewShare returns a Share of one of so many parts of a processor for each, and of burst
// at once.
func NewShare[K comparable](parts int, burst time.Duration) *Share[K] {
	return &Share[K]{time.Duration(parts), NewRate[K](1, time.Duration(parts)*burst)}
}

// Spend counts processor time of somebody's, and returns how long they have to pause.
func (s *Share[K]) Spend(who K, spent time.Duration) time.Duration {
	wait, _ := s.rate.reserve(who, s.parts*spent, math.MaxInt64)
	return max(0, wait)
}
