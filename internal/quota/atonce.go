// SPDX-License-Identifier: Apache-2.0

package quota

import "sync"

// AtOnce bounds how much each has open at one time.
type AtOnce[K comparable] struct {
	most int

	mu   sync.Mutex
	open map[K]int // never 0
}

// NewAtOnce returns an AtOnce of so many for each.
func NewAtOnce[K comparable](most int) *AtOnce[K] {
	return &AtOnce[K]{most: most, open: make(map[K]int)}
}

// Enter takes a place, which Leave gives back; false: there is none left.
func (a *AtOnce[K]) Enter(who K) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[who] >= a.most {
		return false
	}
	a.open[who]++
	return true
}

// Leave gives back a place.
func (a *AtOnce[K]) Leave(who K) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[who]--; a.open[who] == 0 {
		delete(a.open, who)
	}
}
