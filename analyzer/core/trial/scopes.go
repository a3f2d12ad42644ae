// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"container/list"
	"fmt"
	"time"
)

const (
	// maxScopes bounds the scopes of one tunlet, which may be one for each process that a
	// single proposal can change.
	maxScopes = 4096
	// idleScope is how long a scope without samples keeps its place: no trial waits longer
	// for a sample.
	idleScope = judgeTimeout
)

// Scopes are the histories of one tunlet. The zero value is empty.
type Scopes struct {
	byName map[string]*list.Element // of *scope
	recent list.List                // the most recently sampled one first
}

// scope is a history under its name.
type scope struct {
	History
	name    string
	sampled time.Duration // when its latest sample came
}

// Of returns the history of a scope; an empty one where there is none.
func (s *Scopes) Of(name string) *History {
	if e := s.byName[name]; e != nil {
		return &e.Value.(*scope).History
	}
	return &History{}
}

// Add appends a sample that came now to the history of a scope, see [History.Add]. A new scope
// takes the place of an idle one where there are too many, and is left out where none is idle:
// in the place of one that is being sampled, neither would ever have enough samples.
func (s *Scopes) Add(name string, now, at time.Duration, value float64) {
	e := s.byName[name]
	if e == nil {
		if s.full(now) {
			return
		}
		if len(s.byName) == maxScopes { // the oldest one is idle
			delete(s.byName, s.recent.Remove(s.recent.Back()).(*scope).name)
		}
		if s.byName == nil {
			s.byName = map[string]*list.Element{}
		}
		e = s.recent.PushFront(&scope{name: name})
		s.byName[name] = e
	}
	s.recent.MoveToFront(e)
	e.Value.(*scope).sampled = now
	e.Value.(*scope).Add(at, value)
}

// full reports whether there is no room for another scope: not even the least recently sampled
// one is idle.
func (s *Scopes) full(now time.Duration) bool {
	return len(s.byName) == maxScopes && now < s.recent.Back().Value.(*scope).sampled+idleScope
}

// LeftOut says why a scope may have no samples though its tunlet reports them; empty: there is
// room for it.
func (s *Scopes) LeftOut(name string, now time.Duration) string {
	if s.byName[name] != nil || !s.full(now) {
		return ""
	}
	return fmt.Sprintf("; of one tunlet, %d scopes at one time are measured at most", maxScopes)
}
