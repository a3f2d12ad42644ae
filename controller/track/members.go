// SPDX-License-Identifier: Apache-2.0

package track

import (
	"log/slog"
)

// members are the processes of the job, with their present images.
type members struct {
	max       int
	feed      *feed
	outsiders *outsiders
	log       *slog.Logger

	byPID    map[int]*member
	byHandle map[uint64]*member // of images that were told of
	// sessions that a member leads or led.
	sessions map[int]bool
	// over has the start, in ticks, of processes that were found to have ended while
	// their events may still be on their way.
	over map[int]uint64
}

func newMembers(most int, feed *feed, outsiders *outsiders, log *slog.Logger) *members {
	return &members{
		max: most, feed: feed, outsiders: outsiders, log: log,
		byPID: make(map[int]*member), byHandle: make(map[uint64]*member), sessions: make(map[int]bool),
		over: make(map[int]uint64),
	}
}

// has says whether a process is a member.
func (l *members) has(pid int) bool { return l.byPID[pid] != nil }

// add makes a process a member; nil if there are too many.
func (l *members) add(pid int) *member {
	if len(l.byPID) >= l.max {
		l.log.Warn("process is not followed", "pid", pid, "error", ErrTooMany, "limit", l.max)
		l.feed.unfollow(pid)
		return nil
	}
	m := &member{pid: pid}
	l.byPID[pid] = m
	delete(l.outsiders.seen, pid)
	delete(l.over, pid)
	return m
}

// foundOver remembers a process that was found to have ended, and of which the source tells. An end whose word is lost
// for good leaves its trace, so there is a bound.
func (l *members) foundOver(m *member) {
	if len(l.over) >= l.max {
		clear(l.over)
	}
	if start := m.message.GetIdentity().GetStartTicks(); start != 0 {
		l.over[m.pid] = start
	}
}

// late says whether an event is of a process that was found to have ended. Its exit is
// the last that comes.
func (l *members) late(e Event) bool {
	start, found := l.over[e.PID]
	if found && (e.Kind == Exit || e.StartTicks != start) {
		delete(l.over, e.PID)
	}
	return found && e.StartTicks == start
}

// forget lets go of a process.
func (l *members) forget(m *member) {
	m.release()
	if m.message != nil {
		delete(l.byHandle, m.message.GetHandle())
	}
	delete(l.byPID, m.pid)
}

// setSession remembers the sessions that processes of the job lead.
func (l *members) setSession(m *member, session int) {
	m.session = session
	if session == m.pid {
		l.sessions[session] = true
	}
}

// forgetSessions forgets those that no member is in: they may be somebody else's next.
func (l *members) forgetSessions() {
	led := make(map[int]bool)
	for _, m := range l.byPID {
		if l.sessions[m.session] {
			led[m.session] = true
		}
	}
	l.sessions = led
}
