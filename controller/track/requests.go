// SPDX-License-Identifier: Apache-2.0

package track

import (
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// adopt makes a process a member and tells of it.
func (s *state) adopt(pid int) (*member, error) {
	d, err := describe(pid, Event{})
	if err != nil {
		return nil, err
	}
	m := s.members[pid]
	if m == nil {
		if m = s.add(pid); m == nil {
			d.held.Close()
			return nil, ErrTooMany
		}
	}
	if s.sourced {
		if err := s.options.Source.Add(pid); err != nil {
			s.log.Warn("source does not follow", "pid", pid, "error", err)
		}
	}
	off := d.off
	s.present(m, d)
	m = s.members[pid]
	switch {
	case off:
		return nil, ErrOff
	case m == nil:
		return nil, ErrForeign
	}
	return m, nil
}

// follow makes a process a root. It must be the one that is meant, if one is:
// its pid may be another one's by now.
func (s *state) follow(pid int, meant *procid.Identity) (uint64, error) {
	if meant != nil {
		if now, err := procid.Of(pid); err != nil || !now.SameProcess(*meant) {
			return 0, errors.Join(procid.ErrGone, err)
		}
	}
	delete(s.excluded, pid)
	if s.sourced { // before its children are looked for, so that none is missed
		if err := s.options.Source.Add(pid); err != nil {
			s.log.Warn("source does not follow", "pid", pid, "error", err)
		}
	}
	m := s.members[pid]
	if m == nil {
		if m = s.add(pid); m == nil {
			return 0, ErrTooMany
		}
	}
	m.root = true
	if m.message == nil {
		d, err := describe(pid, Event{})
		if err != nil {
			s.forget(m)
			return 0, err
		}
		if d.off {
			s.leave(m, d)
			return 0, ErrOff
		}
		s.present(m, d)
	}
	s.scan()
	return m.message.GetHandle(), nil
}

func (s *state) registered(pid int) (uint64, error) {
	m := s.members[pid]
	if m == nil || m.message == nil || m.registered || !s.sameImage(m) {
		var err error
		if m, err = s.adopt(pid); err != nil {
			return 0, err
		}
	}
	m.registered = true
	if m.refreshes > 0 { // else the first one, which reads all, is still to come
		s.refresh(m, true)
	}
	return m.message.GetHandle(), nil
}

// change replaces the message by a changed copy and tells of it.
func (s *state) change(m *member, change func(*attunev1.Process)) {
	changed := proto.CloneOf(m.message)
	change(changed)
	m.message = changed
	s.options.Handler.Changed(changed)
}

func (s *state) sourceEnded(err error) {
	s.log.Warn("process events have ended; /proc is polled, short-lived processes are missed", "error", err)
	s.sourced = false
	for _, m := range s.members {
		s.watch(m)
	}
}
