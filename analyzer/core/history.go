// SPDX-License-Identifier: Apache-2.0

package core

import (
	"container/list"
	"time"
)

const (
	// historySize bounds the samples kept per scope: 6.4 s at 50 ms.
	historySize = 128
	// maxScopes bounds the scopes of one tunlet; the one least recently
	// sampled makes room.
	maxScopes = 1024
)

// point is one sample: the value over the interval from..at.
type point struct {
	from, at time.Duration
	value    float64
}

// history holds the latest samples of one scope, oldest first.
type history struct {
	scope  string
	points []point
	last   time.Duration
}

// add appends a sample that ends at the given time. A sample that is not
// newer than the last one is dropped: its interval cannot be told.
func (h *history) add(at time.Duration, value float64) {
	from := h.last
	if len(h.points) == 0 {
		from = at
	} else if at <= h.last {
		return
	}
	h.last = at
	if len(h.points) == historySize {
		copy(h.points, h.points[1:])
		h.points = h.points[:historySize-1]
	}
	h.points = append(h.points, point{from, at, value})
}

// since returns the values whose whole interval lies at or after t.
func (h *history) since(t time.Duration) []float64 {
	var out []float64
	for _, p := range h.points {
		if p.from >= t {
			out = append(out, p.value)
		}
	}
	return out
}

// before returns at most n of the latest values whose whole interval lies in
// from..to.
func (h *history) before(from, to time.Duration, n int) []float64 {
	var out []float64
	for _, p := range h.points {
		if p.from >= from && p.at <= to {
			out = append(out, p.value)
		}
	}
	return out[max(0, len(out)-n):]
}

// scopes are the histories of one tunlet, the most recently sampled one first.
// The zero value is empty.
type scopes struct {
	byName map[string]*list.Element // of *history
	recent list.List
}

// get returns the history of a scope, made when it is new; the one that was
// asked for least recently makes room. A flood of scopes costs no more than
// that many samples.
func (s *scopes) get(name string) *history {
	if s.byName == nil {
		s.byName = map[string]*list.Element{}
	}
	if e := s.byName[name]; e != nil {
		s.recent.MoveToFront(e)
		return e.Value.(*history)
	}
	if len(s.byName) >= maxScopes {
		oldest := s.recent.Back()
		s.recent.Remove(oldest)
		delete(s.byName, oldest.Value.(*history).scope)
	}
	h := &history{scope: name}
	s.byName[name] = s.recent.PushFront(h)
	return h
}
