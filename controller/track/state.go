// SPDX-License-Identifier: Apache-2.0

package track

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
)

// Grace is how long a process may live before it is looked at, if the kernel has
// told all about it: a forked one that has not exec'd yet, or what was exec'd. What
// follows a look takes 1 to 3 ms of CPU time.
const Grace = 100 * time.Millisecond

// state is everything that changes while a job runs, and handles what happens. The
// goroutine of Tracker.loop alone touches it, with all that it has; that is why there is
// no lock. The goroutines of the watchers and the hasher share channels with it only.
type state struct {
	hurry     *atomic.Bool
	log       *slog.Logger
	feed      *feed
	outsiders *outsiders
	members   *members
	agenda    *agenda
	watchers  *watchers
	hasher    *hasher
	images    *images
	admission *admission
	refresher *refresher
	scanner   *scanner
}

func newState(o Options, log *slog.Logger, hurry *atomic.Bool, host, boot string, ownDevice, ownInode uint64) *state {
	feed := newFeed(o.Source, log)
	outsiders := newOutsiders(feed, ownDevice, ownInode)
	members := newMembers(o.MaxProcesses, feed, outsiders, log)
	agenda, watchers, hasher := new(agenda), newWatchers(), newHasher(o.Readers, o.Digests, log)
	images := &images{
		host: host, boot: boot, handler: o.Handler, feed: feed, members: members, agenda: agenda, watchers: watchers,
		hasher: hasher, programs: programs{o.Readers, make(map[programFile]string)},
	}
	admission := &admission{jobID: o.JobID, feed: feed, outsiders: outsiders, members: members, images: images, readers: o.Readers, log: log}
	return &state{
		hurry: hurry, log: log, feed: feed, outsiders: outsiders, members: members, agenda: agenda, watchers: watchers,
		hasher: hasher, images: images, admission: admission,
		refresher: &refresher{members: members, images: images, hasher: hasher, readers: o.Readers},
		scanner:   &scanner{feed: feed, outsiders: outsiders, members: members, images: images, admission: admission, log: log},
	}
}

// close lets go of all processes, after the loop has ended.
func (s *state) close() {
	for _, m := range s.members.byPID {
		m.release()
	}
	s.watchers.close()
}

// event handles one event of the source.
func (s *state) event(e Event) {
	if s.members.late(e) {
		return
	}
	switch e.Kind {
	case Fork:
		s.forked(e)
	case Exec:
		s.execed(e)
	case Exit:
		s.ended(e)
	}
}

func (s *state) forked(e Event) {
	if s.outsiders.excluded[e.Parent] {
		s.outsiders.exclude(e.PID)
		return
	}
	parent := s.members.byPID[e.Parent]
	if parent == nil && !e.Member {
		return
	}
	if m := s.members.byPID[e.PID]; m != nil {
		if e.Time <= m.known {
			return // it was found before its own fork was told
		}
		s.images.end(m) // the pid is in use again: its exit was lost
	}
	m := s.members.add(e.PID)
	if m == nil {
		return
	}
	m.known, m.born = e.Time, e
	if parent != nil {
		m.inherited = s.images.bequest(parent)
	}
	s.agenda.schedule(m, Grace)
}

func (s *state) execed(e Event) {
	delete(s.outsiders.excluded, e.PID)
	m := s.members.byPID[e.PID]
	switch {
	case m == nil && !e.Member && !s.admission.belongs(e.PID):
		return
	case m == nil:
		if m = s.members.add(e.PID); m == nil {
			return
		}
	case m.message != nil && e.Time != 0 && e.Time <= m.known:
		return // seen already: this or an even later image was described
	case m.message != nil && m.sameExec(e):
		return
	}
	s.execute(m, e)
}

// execute tells of the image that an exec event brings, at once or when it has
// lived for a while.
func (s *state) execute(m *member, e Event) {
	if m.pending != nil { // and is over
		s.images.tell(m, s.images.remains(m, *m.pending))
	}
	if e.Program == nil || s.hurry.Load() {
		s.admission.look(m, e)
		return
	}
	if m.message != nil {
		m.inherited = m.message
		s.images.replaced(m, e.Time)
	}
	m.pending = &e
	s.agenda.schedule(m, Grace)
}

// ended handles an exit that the source tells of.
func (s *state) ended(e Event) {
	delete(s.outsiders.excluded, e.PID)
	m := s.members.byPID[e.PID]
	if m == nil || e.Time != 0 && beforeStart(e.Time, m.message.GetIdentity().GetStartTicks()) {
		return // not ours, or of an earlier process with this pid
	}
	if m.message == nil && !e.Last && m.livesOn() {
		s.outlivedGrace(m) // its other threads show what it is
		if m.message == nil {
			return // it is none of the job's, or not to be told of yet
		}
	}
	if m.message == nil {
		s.images.tell(m, s.images.remains(m, m.latest()))
	}
	if e.HasStatus {
		m.status, m.final = &e.Status, e.Last
	}
	if !e.Last && m.livesOn() {
		s.watchers.watch(m) // other threads live on, or it is just about to be dead
		return
	}
	m.endedAt, m.taken = e.Time, takenOf(e.Taken)
	s.images.end(m)
}

// exited handles the end that watch has seen.
func (s *state) exited(e exit) {
	if s.members.byPID[e.member.pid] == e.member && e.member.held == e.held {
		s.images.end(e.member)
	}
}

// work looks at all members that are due.
func (s *state) work() {
	now := time.Now()
	for {
		item, due := s.agenda.next(now)
		if !due {
			return
		}
		m := item.member
		switch {
		case s.members.byPID[m.pid] != m || m.message.GetHandle() != item.handle:
		case m.message == nil:
			s.outlivedGrace(m)
		default:
			s.refresher.refresh(m, false)
			m.refreshes++
			s.agenda.schedule(m, refreshDelay(m.refreshes))
		}
	}
}

// outlivedGrace tells of an image that has lived for a while, or of a forked
// process that has not exec'd.
func (s *state) outlivedGrace(m *member) {
	if m.pending != nil {
		s.admission.look(m, *m.pending)
		return
	}
	if device, inode, _ := procid.ExecutableFile(m.pid); s.outsiders.isOwn(device, inode) {
		s.agenda.schedule(m, time.Second) // our own child, on its way to exec
		return
	}
	s.admission.look(m, m.born)
}

// sourceEnded goes on without the source.
func (s *state) sourceEnded(err error) {
	s.log.Warn("process events have ended; /proc is polled, short-lived processes are missed", "error", err)
	s.feed.on = false
	for _, m := range s.members.byPID {
		s.watchers.watch(m)
	}
}
