// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"context"
	"sync"
)

// helpers are those of a pool that were started and are not reaped yet.
type helpers struct {
	mu   sync.Mutex // held while one starts, so that each child that is one is known; a leaf lock
	pids map[int]bool
}

// start starts a helper.
func (s *helpers) start(options Options) (*helper, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, err := startHelper(options)
	if err == nil {
		s.pids[h.held.PID()] = true
	}
	return h, err
}

// end ends a helper, as [helper.end] does.
func (s *helpers) end(ctx context.Context, h *helper, gone func()) {
	pid := h.held.PID()
	h.end(ctx, lastPatience, func() {
		s.mu.Lock()
		delete(s.pids, pid)
		s.mu.Unlock()
		gone()
	})
}

func (s *helpers) has(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pids[pid]
}
