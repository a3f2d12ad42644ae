// SPDX-License-Identifier: Apache-2.0

package track

import (
	"os"

	"github.com/attune-hpc/attune/internal/procid"
)

// scan looks through /proc for processes that belong and are not known, and
// for members that have ended or changed unnoticed.
func (s *state) scan() {
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
	s.countScan(there)
	s.scanMembers(there)
	if !s.sourced {
		return
	}
	if lost := s.options.Source.Lost(); lost != s.lost {
		s.log.Warn("process events lost; short-lived processes may be missing", "lost", lost-s.lost)
		s.lost = lost
	}
}

// scanNew adopts what belongs, and says whether there was anything.
func (s *state) scanNew(pids []int) (found bool) {
	for _, pid := range pids {
		if s.members[pid] != nil || s.seen[pid] > youngScans || !s.belongs(pid) {
			continue
		}
		// What has ended meanwhile, or turns out to be another job's, is none
		// of ours.
		if m, err := s.adopt(pid); err == nil {
			found = true
			s.log.Debug("process found", "pid", pid, "handle", m.message.GetHandle())
		}
	}
	return found
}

// belongs looks whether a process that is no member yet is one of the job.
func (s *state) belongs(pid int) bool {
	stat, err := procid.ReadStat(pid)
	if err != nil || stat.Zombie() || pid == os.Getpid() || s.excluded[pid] {
		return false
	}
	// A thread of the kernel never executes anything. A process whose first thread has
	// ended has no memory there either, but other threads.
	if stat.VirtualBytes == 0 && stat.Threads == 1 {
		s.seen[pid] = youngScans
		return false
	}
	if device, inode := executableInode(pid); s.isOwn(device, inode) || s.excluded[stat.ParentPID] {
		// Attune itself, or a tunlet of it. Our own child is perhaps just
		// about to exec.
		if stat.ParentPID != os.Getpid() {
			s.exclude(pid)
		}
		return false
	}
	env := readEnviron(pid)
	if job := env[JobVariable]; job != "" || env.off() {
		return job == s.options.JobID && !env.off()
	}
	return s.members[stat.ParentPID] != nil || s.sessions[stat.Session]
}

func (s *state) isOwn(device, inode uint64) bool {
	return device == s.ownDevice && inode == s.ownInode
}

// countScan counts how long foreign processes have been there, and forgets
// those that are gone.
func (s *state) countScan(there map[int]bool) {
	for pid := range there {
		if s.members[pid] == nil {
			s.seen[pid]++
		}
	}
	for pid := range s.seen {
		if !there[pid] || s.members[pid] != nil {
			delete(s.seen, pid)
		}
	}
	for pid := range s.excluded {
		if !there[pid] {
			delete(s.excluded, pid)
		}
	}
}

func (s *state) scanMembers(there map[int]bool) {
	for _, m := range s.members {
		switch {
		case s.alive(m, there):
			m.suspected = false
			if !s.sourced && m.message != nil {
				s.checkImage(m)
			}
		case m.suspected || !s.sourced && m.held == nil:
			s.end(m)
		default:
			// The source may be about to tell; only at the second time its
			// word counts as lost.
			m.suspected = true
		}
	}
	led := make(map[int]bool)
	for _, m := range s.members {
		if s.sessions[m.session] {
			led[m.session] = true
		}
	}
	s.sessions = led // a session that nobody is in may be somebody else's next
}

func (s *state) alive(m *member, there map[int]bool) bool {
	if m.held != nil {
		return m.held.Alive()
	}
	return there[m.pid] && m.message == nil
}

// checkImage looks whether a process has exec'd without an event.
func (s *state) checkImage(m *member) {
	stat, err := procid.ReadStat(m.pid)
	if err != nil || stat.Zombie() || s.isImage(m, stat) {
		return
	}
	if d, err := describe(m.pid, Event{}); err == nil {
		s.present(m, d)
	}
}
