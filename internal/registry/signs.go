// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"sync"
	"time"
)

// signsOfLife knows since when each Analyzer has been silent, on this process'
// own clock that never jumps.
type signsOfLife struct {
	mu sync.Mutex
	// revisions are those of the last sign; seen is when it came.
	revisions map[string]uint64
	seen      map[string]time.Time
	// left are those that have said good-bye.
	left map[string]bool
	// since is when looking began, or began anew: silence before is none.
	since time.Time
}

func newSignsOfLife() *signsOfLife {
	return &signsOfLife{
		revisions: make(map[string]uint64), seen: make(map[string]time.Time), left: make(map[string]bool),
		since: time.Now(),
	}
}

// observe takes changes of the Analyzers' bucket.
func (s *signsOfLife) observe(list []change, interrupted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if interrupted {
		s.since = now
	}
	for _, c := range list {
		if c.record == nil {
			s.left[c.key] = true
			continue
		}
		delete(s.left, c.key)
		if s.revisions[c.key] != c.revision {
			s.revisions[c.key], s.seen[c.key] = c.revision, now
		}
	}
	for id, seen := range s.seen {
		// The dead; one that comes back with its id gives a new sign.
		if now.Sub(seen) > time.Hour {
			delete(s.seen, id)
			delete(s.revisions, id)
			delete(s.left, id)
		}
	}
}

// silent returns for how long there was no sign of an Analyzer, and whether it
// has said good-bye.
func (s *signsOfLife) silent(id string) (since time.Duration, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.since
	if seen, ok := s.seen[id]; ok && seen.After(last) {
		last = seen
	}
	return time.Since(last), s.left[id]
}
