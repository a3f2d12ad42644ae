// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"sync"
)

// Fair says whether somebody who has some of most may have one more when so many are
// taken: their share, one in parts, for certain, and beyond that as many as are free, so
// that there are some for whoever comes next.
func Fair(has, taken, most, parts int) bool {
	return taken < most && has < max(1, most/parts, most-taken)
}

// Places are so many for all, who have them by [Fair] and wait for them otherwise.
type Places[K comparable] struct {
	most, parts int

	mu    sync.Mutex
	taken int
	by    map[K]int     // never 0
	freed chan struct{} // closed when one is given back
}

// NewPlaces returns so many places, of which each has one part of parts for certain.
func NewPlaces[K comparable](most, parts int) *Places[K] {
	return &Places[K]{most: most, parts: parts, by: make(map[K]int), freed: make(chan struct{})}
}

// Take takes a place, which Leave gives back. If there is none it calls waits, and waits
// until there is one or ctx ends.
func (p *Places[K]) Take(ctx context.Context, who K, waits func()) error {
	for {
		freed := p.enter(who)
		if freed == nil {
			return nil
		}
		waits()
		waits = func() {}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// enter takes a place; if there is none it returns what is closed when that changes.
func (p *Places[K]) enter(who K) (freed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !Fair(p.by[who], p.taken, p.most, p.parts) {
		return p.freed
	}
	p.taken++
	p.by[who]++
	return nil
}

// Leave gives back a place.
func (p *Places[K]) Leave(who K) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.by[who]--; p.by[who] == 0 {
		delete(p.by, who)
	}
	close(p.freed)
	p.freed = make(chan struct{})
}

// Taken is how many places are taken.
func (p *Places[K]) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}
