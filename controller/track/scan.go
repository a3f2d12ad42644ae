// SPDX-License-Identifier: Apache-2.0

package track

import (
	"errors"
	"log/slog"
	"maps"

	"github.com/attune-hpc/attune/internal/procid"
)

// scanner finds in /proc what nobody tells.
type scanner struct {
	feed      *feed
	outsiders *outsiders
	members   *members
	images    *images
	admission *admission
	log       *slog.Logger
}

// scan looks through /proc for processes that belong and are not known, and
// for members that have ended or changed unnoticed.
func (s *scanner) scan() {
	pids, err := procid.List()
	if err != nil {
		s.log.Warn("processes cannot be listed", "error", err)
		return
	}
	there := make(map[int]bool, len(pids))
	for _, pid := range pids {
		there[pid] = true
	}
	// A child may have a smaller pid than its parent, so once is not enough.
	for s.scanNew(pids) {
	}
	s.outsiders.countScan(there, s.members.has)
	s.scanMembers(there)
	s.feed.logLost()
}

// scanNew adopts what belongs, and says whether there was anything.
func (s *scanner) scanNew(pids []int) (found bool) {
	for _, pid := range pids {
		if s.members.has(pid) || s.outsiders.isKnown(pid) || !s.admission.belongs(pid) {
			continue
		}
		// What has ended meanwhile, or turns out to be another job's, is none
		// of ours.
		if m, err := s.admission.adopt(pid); err == nil {
			found = true
			s.log.Debug("process found", "pid", pid, "handle", m.message.GetHandle())
		}
	}
	return found
}

func (s *scanner) scanMembers(there map[int]bool) {
	s.feed.full = false
	for _, m := range s.members.byPID {
		told := s.feed.tells(m.pid)
		switch {
		case s.alive(m, there):
			m.suspected = false
			s.scanLiving(m, told)
		case !m.suspected && (told || m.watched && m.held != nil):
			// The source, or who waits for its end, may be about to tell; only at the
			// second time their word counts as lost.
			m.suspected = true
		default:
			if told {
				s.members.foundOver(m)
			}
			s.images.end(m)
		}
	}
	maps.DeleteFunc(s.feed.refused, func(pid int, _ bool) bool { return !s.members.has(pid) })
	s.members.forgetSessions()
}

// scanLiving looks at a process of which nobody tells what it executes. The source may have
// room for it by now: it is asked first, so that no exec falls in between.
func (s *scanner) scanLiving(m *member, told bool) {
	if !told && !s.feed.full {
		s.feed.follow(m.pid)
	}
	if m.message != nil && (!told || m.held == nil) {
		s.checkImage(m)
	}
}

// endAll tells the ends that nobody has told when all is over.
func (s *scanner) endAll() {
	for _, m := range s.members.byPID {
		if m.message != nil && !s.alive(m, nil) {
			s.images.end(m)
		}
	}
}

func (s *scanner) alive(m *member, there map[int]bool) bool {
	switch {
	case m.held != nil:
		return m.held.Alive()
	case m.message == nil:
		return there[m.pid]
	}
	// It had ended when it was told of, or could not be looked at for another reason.
	stat, err := procid.ReadStat(m.pid)
	if err != nil {
		return !errors.Is(err, procid.ErrGone)
	}
	return !stat.Zombie() && stat.StartTicks == m.message.GetIdentity().GetStartTicks()
}

// checkImage looks whether a process has exec'd without an event, or can be described by
// now.
func (s *scanner) checkImage(m *member) {
	stat, err := procid.ReadStat(m.pid)
	if err != nil || stat.Zombie() || m.hasImage(stat) {
		return
	}
	if d, err := describe(s.admission.readers, m.pid, Event{}); err == nil {
		s.admission.present(m, d)
	}
}
