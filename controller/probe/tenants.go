// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"maps"
	"slices"
	"sync"
)

// tenants are the processes in which points are placed. Its methods may be called from
// any goroutine, without the lock of a process.
type tenants struct {
	*common
	kernel *kernel
	work   *work

	mu sync.Mutex // guards of; comes after the lock of a process
	of map[uint64]*tenant
}

func (s *tenants) add(t *tenant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[t.process.Handle()] = t
}

// at returns the tenant with a handle, nil if there is none.
func (s *tenants) at(handle uint64) *tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[handle]
}

// remove returns the tenant that it removes, nil if there is none.
func (s *tenants) remove(handle uint64) *tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.of[handle]
	delete(s.of, handle)
	return t
}

func (s *tenants) all() []*tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.of))
}

// askFor has a wish fulfilled in all processes that it is meant for. It returns at once.
func (s *tenants) askFor(w wish) {
	for _, t := range s.all() {
		if wants(w.spec, t.process.Handle()) {
			t.ask(w)
		}
	}
}

// recall has patches serve the points again that gave way to uprobes of others. All
// go out of all processes before one of them is placed again: their own uprobes are
// in the way, too. What is called meanwhile is not counted, and the points say for
// how long.
func (s *tenants) recall() {
	again := make(map[*tenant][]wish)
	for _, t := range s.all() {
		if wishes := t.leaveKernel(); len(wishes) > 0 {
			again[t] = wishes
		}
	}
	if len(again) == 0 {
		return
	}
	s.kernel.returnAll()
	for t, wishes := range again {
		for _, w := range wishes {
			t.ask(w)
		}
	}
}

// leaveKernel takes the points out that patches can serve again, and returns them.
func (t *tenant) leaveKernel() (wishes []wish) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for index, p := range t.placed {
		if !p.yielding || t.gone || p.needed() {
			continue
		}
		wishes = append(wishes, wish{index: index, spec: p.spec, back: true})
	}
	for _, w := range wishes {
		t.leave(t.work.ctx, w.index)
	}
	return wishes
}
