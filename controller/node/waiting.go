// SPDX-License-Identifier: Apache-2.0

package node

import (
	"slices"

	"github.com/attune-hpc/attune/internal/procid"
)

// waiting returns the processes that a session's controller is to follow. They stay
// in the list until followed, so that nobody takes one twice.
func (l *sessions) waiting(s *session) []*procid.Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(s.waiting)
}

// followed takes one of those that wait off the list: the controller has it, or it has
// ended.
func (l *sessions) followed(s *session, process *procid.Process) {
	l.mu.Lock()
	s.waiting = slices.DeleteFunc(s.waiting, func(other *procid.Process) bool { return other == process })
	l.mu.Unlock()
	_ = process.Close() // it is open until here
}

// postpone has one of those that wait wait behind the others.
func (l *sessions) postpone(s *session, process *procid.Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := slices.Index(s.waiting, process); at >= 0 {
		s.waiting = append(slices.Delete(s.waiting, at, at+1), process)
	}
}
