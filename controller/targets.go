// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"sync"
)

// targetSet is the set of process images under control. This file is the only
// one that touches it.
type targetSet struct {
	mu sync.Mutex // guards all; a leaf lock
	// all by handle.
	all map[uint64]*target
	// latest image of each process, by pid.
	latest map[int]*target
}

func newTargets() *targetSet {
	return &targetSet{all: make(map[uint64]*target), latest: make(map[int]*target)}
}

func (s *targetSet) add(t *target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[t.handle], s.latest[t.pid] = t, t
}

func (s *targetSet) get(handle uint64) *target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[handle]
}

// remove returns the target, nil if it was removed before.
func (s *targetSet) remove(handle uint64) *target {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.all[handle]
	delete(s.all, handle)
	if t != nil && s.latest[t.pid] == t {
		delete(s.latest, t.pid)
	}
	return t
}

// list returns the targets in the order of their handles.
func (s *targetSet) list() []*target {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*target, 0, len(s.all))
	for _, t := range s.all {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *target) int { return int(a.handle) - int(b.handle) })
	return out
}

// handles returns the handles of the targets.
func (s *targetSet) handles() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.all))
}

// ofPID returns the latest image of a process; nil: it is not under control.
func (s *targetSet) ofPID(pid int) *target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest[pid]
}

// has says whether a process of that pid is under control.
func (s *targetSet) has(pid int) bool {
	t := s.ofPID(pid)
	return t != nil && t.Alive()
}
