// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// look describes a process's present image and tells of it. What the process
// has left no time to describe is told as far as the event knows it.
func (s *state) look(m *member, e Event) {
	d, err := describe(m.pid, e)
	switch {
	case err == nil:
		if isAnother(d.message, e.Program) {
			s.tell(m, s.remains(m, e)) // it executes another one by now
		}
		s.present(m, d)
		return
	case !errors.Is(err, procid.ErrGone):
		s.log.Warn("process cannot be described", "pid", m.pid, "error", err)
	}
	s.tell(m, s.remains(m, e))
}

// remains is all that is known of a process that was too short-lived to be
// read: a fork is what its parent was, an exec has the name that came with the
// event.
func (s *state) remains(m *member, e Event) *description {
	before := m.message
	if before == nil {
		before = m.inherited
	}
	message := new(attunev1.Process)
	if before != nil {
		message = proto.CloneOf(before)
	}
	if e.Kind == Exec {
		message = &attunev1.Process{Job: message.Job, Rank: message.Rank, Uid: message.Uid, CpusAllowed: message.CpusAllowed}
		if e.Command != "" {
			message.CommandLine = []string{e.Command}
		}
		s.programs.describe(message, e.Program)
	}
	message.ParentPid = int32(m.born.Parent)
	for _, from := range []Event{m.born, e} {
		if from.HasUID {
			message.Uid = from.UID
		}
	}
	start := max(e.StartTicks, m.born.StartTicks, m.message.GetIdentity().GetStartTicks())
	message.Identity = &attunev1.ProcessIdentity{
		BootId: s.boot, Pid: int32(m.pid), StartTicks: start,
		ExeDevice: message.GetIdentity().GetExeDevice(), ExeInode: message.GetIdentity().GetExeInode(),
	}
	return &description{message: message, at: max(m.known, e.Time)}
}

// present tells of a description unless its process is none of the job's.
func (s *state) present(m *member, d *description) {
	start := m.message.GetIdentity().GetStartTicks()
	switch {
	case m.message != nil && start != d.message.GetIdentity().GetStartTicks():
		root := m.root
		s.end(m) // another process has the pid by now
		if m = s.add(m.pid); m == nil {
			d.held.Close()
			return
		}
		m.root = root
	case d.off, !m.root && s.foreign(d):
		s.leave(m, d)
		return
	}
	s.tell(m, d)
}

// foreign says whether a description is of Attune itself or another job.
func (s *state) foreign(d *description) bool {
	identity := d.message.GetIdentity()
	return s.isOwn(identity.GetExeDevice(), identity.GetExeInode()) || d.job != "" && d.job != s.options.JobID
}

// leave forgets a process that has left the job by its last exec.
func (s *state) leave(m *member, d *description) {
	d.held.Close()
	identity := d.message.GetIdentity()
	if m.message != nil {
		s.replaced(m, 0)
	}
	s.forget(m)
	if s.isOwn(identity.GetExeDevice(), identity.GetExeInode()) {
		s.exclude(m.pid)
		return
	}
	s.unfollow(m.pid)
}

// tell makes a description the member's image, with a new handle.
func (s *state) tell(m *member, d *description) {
	began := d.at
	if m.message != nil {
		s.replaced(m, 0)
	} else if e := m.latest(); e.Time != 0 {
		began = e.Time
	}
	m.pending = nil
	s.handle++
	m.message, m.held, m.image, m.virtual = d.message, d.held, d.image, 0
	m.linked = nil
	m.known, m.registered, m.refreshes, m.status = max(m.known, d.at), false, 0, nil
	m.watched, m.suspected, m.digesting, m.final = false, false, false, false
	m.message.Handle, m.message.Host, m.message.SeenUnixNano = s.handle, s.host, unixNano(began)
	if m.held != nil {
		if sum, ok := s.options.Digests.Known(procPath(m.pid, "exe")); ok {
			m.message.ExecutableSha256 = sum
		}
	}
	s.handles[s.handle] = m
	s.setSession(m, d.session)
	s.options.Handler.Started(m.message, m.held)
	if m.held == nil {
		return
	}
	s.requestDigest(m)
	s.schedule(m, refreshDelay(0))
	if !s.sourced {
		s.watch(m)
	}
}

// setSession remembers the sessions that processes of the job lead.
func (s *state) setSession(m *member, session int) {
	m.session = session
	if session == m.pid {
		s.sessions[session] = true
	}
}

// replaced tells that an exec has ended the present image, then (CLOCK_MONOTONIC)
// or just now (0).
func (s *state) replaced(m *member, at uint64) {
	delete(s.handles, m.message.GetHandle())
	s.options.Handler.Ended(&attunev1.ProcessEnded{
		Process: m.message.GetHandle(), ReplacedByExec: true, EndedUnixNano: m.over(at),
	})
	m.message = nil
	s.release(m)
}

// over is when the image ended: not before it was seen, though the clocks are read
// one after the other.
func (m *member) over(at uint64) int64 { return max(unixNano(at), m.message.GetSeenUnixNano()) }

func (s *state) release(m *member) {
	if m.held != nil {
		m.held.Close()
		m.held = nil
	}
}

// watch waits for the process's end by its pidfd.
func (s *state) watch(m *member) {
	if m.watched || m.held == nil {
		return
	}
	m.watched = true
	held := m.held
	s.watchers.Go(func() {
		// The context need not end: release closes what nobody needs any more.
		if held.Wait(context.Background()) != nil {
			return
		}
		select {
		case s.exits <- exit{m, held}:
		case <-s.stop:
		}
	})
}

// exited handles the end that watch has seen.
func (s *state) exited(e exit) {
	if s.members[e.member.pid] == e.member && e.member.held == e.held {
		s.end(e.member)
	}
}

// end tells that a process has ended and forgets it.
func (s *state) end(m *member) {
	if m.message == nil {
		s.tell(m, s.remains(m, m.latest()))
	}
	if m.held != nil && !m.final {
		// The kernel's own account is right also where the first thread ended
		// before the others.
		if status, ok := m.held.ExitStatus(); ok {
			m.status = &status
		}
	}
	s.options.Handler.Ended(&attunev1.ProcessEnded{
		Process: m.message.GetHandle(), WaitStatus: m.status, EndedUnixNano: m.over(m.endedAt),
	})
	s.forget(m)
}

func (s *state) forget(m *member) {
	s.release(m)
	if m.message != nil {
		delete(s.handles, m.message.GetHandle())
	}
	delete(s.members, m.pid)
}
