// SPDX-License-Identifier: Apache-2.0

package track

import (
	"errors"

	"github.com/attune-hpc/attune/internal/procid"
)

// follow makes a process a root. It must be the one that is meant, if one is:
// its pid may be another one's by now.
func (s *state) follow(pid int, meant *procid.Identity) (uint64, error) {
	if meant != nil {
		if now, err := procid.Of(pid); err != nil || !now.SameProcess(*meant) {
			return 0, errors.Join(procid.ErrGone, err)
		}
	}
	delete(s.outsiders.excluded, pid)
	m := s.members.byPID[pid]
	// Before its children are looked for, so that none is missed.
	if !s.feed.follow(pid) && m == nil {
		return 0, procid.ErrGone
	}
	if m == nil {
		if m = s.members.add(pid); m == nil {
			return 0, ErrTooMany
		}
	}
	m.root = true
	if m.message == nil {
		d, err := describe(s.admission.readers, pid, Event{})
		if err != nil {
			s.members.forget(m)
			s.feed.unfollow(pid)
			return 0, err
		}
		if d.off {
			s.admission.leave(m, d)
			return 0, ErrOff
		}
		s.admission.present(m, d)
	} else {
		s.scanner.checkImage(m) // the word of an exec may be on its way
	}
	s.scanner.scan()
	if m.message == nil { // the scan has found that it executes what is to be left alone
		return 0, ErrOff
	}
	return m.message.GetHandle(), nil
}

// registered takes the word of DMLib in a process.
func (s *state) registered(pid int) (uint64, error) {
	m := s.members.byPID[pid]
	if m == nil || m.message == nil || m.registered || !m.sameImage() {
		var err error
		if m, err = s.admission.adopt(pid); err != nil {
			return 0, err
		}
	}
	m.registered = true
	if m.refreshes > 0 { // else the first one, which reads all, is still to come
		s.refresher.refresh(m, true)
	}
	return m.message.GetHandle(), nil
}
