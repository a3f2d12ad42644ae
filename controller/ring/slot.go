// SPDX-License-Identifier: Apache-2.0

package ring

import "sync"

// drainsPerSearch is how often Drain looks for threads that own a slot but no
// ring; it only frees such slots, so it may be late.
const drainsPerSearch = 64

// slotFinder remembers which slots have ever been in use. There may be
// hundreds, each on a page of its own, which reading alone would allocate and
// map; most processes use a few. So all are looked at only when there is a
// reason, and the known ones every time.
type slotFinder struct {
	mu    sync.Mutex
	seen  []bool
	known []int // grows only, so earlier elements may be read without mu
	rings uint32
	age   int
}

// knownSlots returns the indices of slots ever seen in use, oldest first.
func (m *Memory) knownSlots() []int {
	m.found.mu.Lock()
	defer m.found.mu.Unlock()
	return m.found.known
}

// findSlots looks at all slots. The caller holds life.
func (m *Memory) findSlots() {
	m.found.mu.Lock()
	defer m.found.mu.Unlock()
	m.search(load32(m.data, headerRingNext))
}

// findNewRings looks at all slots if a ring has been handed out since last
// time: a thread owns its slot before it asks for a ring, so no record is
// overlooked. The caller holds life.
func (m *Memory) findNewRings() {
	m.found.mu.Lock()
	defer m.found.mu.Unlock()
	m.found.age++
	rings := load32(m.data, headerRingNext)
	if rings != m.found.rings || m.found.age >= drainsPerSearch {
		m.search(rings)
	}
}

// search adds slots that are in use. rings was read before.
func (m *Memory) search(rings uint32) {
	m.found.rings, m.found.age = rings, 0
	for i, seen := range m.found.seen {
		if !seen && load32(m.data, m.slotAt(i)+slotState) != slotFree {
			m.found.seen[i] = true
			m.found.known = append(m.found.known, i)
		}
	}
}
