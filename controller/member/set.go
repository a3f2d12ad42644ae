// SPDX-License-Identifier: Apache-2.0

package member

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
)

// Set is the set of members that live.
type Set struct {
	mu sync.Mutex // guards what follows; a leaf lock
	// all by handle.
	all map[uint64]*Member
	// latest image of each process, by pid.
	latest map[int]*Member
	leave  []func(*Member)
}

// NewSet returns an empty set.
func NewSet() *Set {
	return &Set{all: make(map[uint64]*Member), latest: make(map[int]*Member)}
}

// OnLeave adds what somebody does, who keeps something about members, for each
// that has gone. Hooks run in the order in which they were added.
func (s *Set) OnLeave(hook func(*Member)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave = append(s.leave, hook)
}

// Leave runs the hooks for a member that has gone, and lets go of what it has. It
// may wait for what is being changed in the process. It is called once.
func (s *Set) Leave(m *Member) error {
	s.mu.Lock()
	hooks := s.leave
	s.mu.Unlock()
	for _, hook := range hooks {
		hook(m)
	}
	return m.close()
}

// Close lets go of what the members have that are still there. Nothing else may
// use them any more.
func (s *Set) Close() error {
	var errs []error
	for _, m := range s.List() {
		errs = append(errs, s.Remove(m.Handle()).close())
	}
	return errors.Join(errs...)
}

// Add adds a member.
func (s *Set) Add(m *Member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[m.Handle()], s.latest[m.PID()] = m, m
}

// Get returns a member; nil: it is not there, or has gone.
func (s *Set) Get(handle uint64) *Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[handle]
}

// Remove returns the member, nil if it was removed before.
func (s *Set) Remove(handle uint64) *Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.all[handle]
	delete(s.all, handle)
	if m != nil && s.latest[m.PID()] == m {
		delete(s.latest, m.PID())
	}
	return m
}

// List returns the members in the order of their handles.
func (s *Set) List() []*Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := slices.Collect(maps.Values(s.all))
	slices.SortFunc(out, func(a, b *Member) int { return cmp.Compare(a.Handle(), b.Handle()) })
	return out
}

// Handles returns the handles of the members, in order.
func (s *Set) Handles() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.all))
}

// OfPID returns the latest image of a process; nil: it is no member.
func (s *Set) OfPID(pid int) *Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest[pid]
}

// Has says whether a process of that pid is a member.
func (s *Set) Has(pid int) bool {
	m := s.OfPID(pid)
	return m != nil && m.Alive()
}
