// SPDX-License-Identifier: Apache-2.0

package track

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// state is everything that changes while a job runs. It is touched by the
// goroutine of Tracker.loop alone, by the methods in this file (events),
// image.go (telling of images), scan.go (what is found in /proc), refresh.go
// (what becomes known later) and requests.go; that is why there is no lock. The
// only other goroutines that know of it are those of watch, which wait for a
// pidfd and post to exits.
type state struct {
	options             Options
	hurry               *atomic.Bool
	log                 *slog.Logger
	host, boot          string
	ownDevice, ownInode uint64
	// sourced says that the source still tells what happens.
	sourced bool

	handle  uint64             // last one given
	members map[int]*member    // by process id
	handles map[uint64]*member // of images that were told of
	// sessions that a member leads or led.
	sessions map[int]bool
	// excluded processes are Attune's own; so are their children.
	excluded map[int]bool
	lost     uint64 // events, as logged
	// seen counts for how many scans a process that is none of ours is there.
	seen     map[int]int
	due      dueHeap
	programs programs
	// usable is which CPUs the processes could be given.
	usable usableCPUs

	exits    chan exit
	digests  chan digestRequest
	digested chan digestResult
	stop     chan struct{}
	watchers sync.WaitGroup
}

// member is one process of the job with its present image.
type member struct {
	pid  int
	root bool
	// known is CLOCK_MONOTONIC, nanoseconds: what happened before is part of
	// what is known.
	known uint64
	// born is the fork that made it; the zero Event if that was not seen.
	born Event
	// inherited is the parent's message at that time, which is as true for the
	// child until it execs.
	inherited *attunev1.Process

	// pending is the exec of an image that is described when it has lived for
	// Grace, by the kernel's words if it has ended by then; nil: none is.
	pending *Event

	// message of the image that was told of; nil: none was yet.
	message    *attunev1.Process
	held       *procid.Process
	image      procid.Image
	virtual    uint64
	linked     []string // what is in the executable as an object would be; nil: not looked yet
	session    int
	registered bool
	digesting  bool
	refreshes  int

	endedAt   uint64 // CLOCK_MONOTONIC, nanoseconds; 0: not known
	status    *int32
	final     bool // status is that of the last thread
	watched   bool
	suspected bool // was not alive at the last scan
}

// linkedIn lists what is in the executable as an object would be. That does not
// change as long as the process runs it.
func (m *member) linkedIn() []string {
	if m.linked == nil {
		m.linked = readLinked(m.pid)
	}
	return m.linked
}

// exit says that the process of held has ended.
type exit struct {
	member *member
	held   *procid.Process
}

const (
	// Grace is how long a process may live before it is looked at, if the kernel has
	// told all about it: a forked one that has not exec'd yet, or what was exec'd. What
	// follows a look takes 1 to 3 ms of CPU time.
	Grace = 100 * time.Millisecond
	// sameExec is how long before an exec event the new image may already be
	// seen in /proc. Beyond it an image that looks the same is a new one, of a
	// program that runs without address randomisation.
	sameExec = uint64(50 * time.Millisecond)
	// sameExecGone is the same for a process that cannot be looked at any more.
	sameExecGone = uint64(5 * time.Millisecond)
	// youngScans is for how many scans a process that does not belong is
	// looked at again: it may yet exec into the job.
	youngScans = 10
	// digestQueue bounds executables that wait to be hashed.
	digestQueue = 1024
)

func newState(t *Tracker, host, boot string, ownDevice, ownInode uint64) *state {
	return &state{
		options: t.options, hurry: &t.hurry, log: t.log, host: host, boot: boot, ownDevice: ownDevice, ownInode: ownInode,
		sourced: t.options.Source != nil,
		members: make(map[int]*member), handles: make(map[uint64]*member),
		sessions: make(map[int]bool), excluded: make(map[int]bool), seen: make(map[int]int), programs: make(programs),
		exits: make(chan exit), digests: make(chan digestRequest, digestQueue),
		digested: make(chan digestResult), stop: make(chan struct{}),
	}
}

// close lets go of all processes, after the loop has ended.
func (s *state) close() {
	close(s.stop)
	for _, m := range s.members {
		s.release(m)
	}
	s.watchers.Wait()
}

// event handles one event of the source.
func (s *state) event(e Event) {
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
	if s.excluded[e.Parent] {
		s.exclude(e.PID)
		return
	}
	parent := s.members[e.Parent]
	if parent == nil && !e.Member {
		return
	}
	if m := s.members[e.PID]; m != nil {
		if e.Time <= m.known {
			return // it was found before its own fork was told
		}
		s.end(m) // the pid is in use again: its exit was lost
	}
	m := s.add(e.PID)
	if m == nil {
		return
	}
	m.known, m.born = e.Time, e
	if parent != nil {
		m.inherited = s.bequest(parent)
	}
	s.schedule(m, Grace)
}

// bequest is what the children of a process inherit; nil: nothing is known of it.
func (s *state) bequest(m *member) *attunev1.Process {
	switch {
	case m.pending != nil:
		return s.remains(m, *m.pending).message
	case m.message != nil:
		return m.message
	}
	return m.inherited
}

func (s *state) execed(e Event) {
	delete(s.excluded, e.PID)
	m := s.members[e.PID]
	switch {
	case m == nil && !e.Member && !s.belongs(e.PID):
		return
	case m == nil:
		if m = s.add(e.PID); m == nil {
			return
		}
	case m.message != nil && e.Time != 0 && e.Time <= m.known:
		return // seen already: this or an even later image was described
	case m.message != nil && s.sameExec(m, e):
		return
	}
	s.execute(m, e)
}

// execute tells of the image that an exec event brings, at once or when it has
// lived for a while.
func (s *state) execute(m *member, e Event) {
	if m.pending != nil { // and is over
		s.tell(m, s.remains(m, *m.pending))
	}
	if e.Program == nil || s.hurry.Load() {
		s.look(m, e)
		return
	}
	if m.message != nil {
		m.inherited = m.message
		s.replaced(m, e.Time)
	}
	m.pending = &e
	s.schedule(m, Grace)
}

// sameExec says whether an exec event, later than what is known, tells of the
// image that is known: the kernel shows it in /proc before it tells.
func (s *state) sameExec(m *member, e Event) bool {
	if e.Time != 0 && e.Time-m.known >= sameExec {
		return false
	}
	stat, err := procid.ReadStat(m.pid)
	if err != nil || stat.Zombie() {
		return m.held != nil && e.Time-m.known < sameExecGone
	}
	return s.isImage(m, stat)
}

// sameImage says whether the process still has the image that was described.
func (s *state) sameImage(m *member) bool {
	stat, err := procid.ReadStat(m.pid)
	return err == nil && s.isImage(m, stat) && stat.Image != procid.Image{}
}

// ended handles an exit that the source tells of.
func (s *state) ended(e Event) {
	delete(s.excluded, e.PID)
	m := s.members[e.PID]
	if m == nil || e.Time != 0 && beforeStart(e.Time, m.message.GetIdentity().GetStartTicks()) {
		return // not ours, or of an earlier process with this pid
	}
	if m.message == nil {
		s.tell(m, s.remains(m, m.latest()))
	}
	m.endedAt = e.Time
	if e.HasStatus {
		m.status, m.final = &e.Status, e.Last
	}
	if !e.Last && m.held != nil && m.held.Alive() {
		s.watch(m) // other threads live on, or it is just about to be dead
		return
	}
	s.end(m)
}

// latest is the last event that is known of a process with no image told of.
func (m *member) latest() Event {
	if m.pending != nil {
		return *m.pending
	}
	return m.born
}

// add makes a process a member; nil if there are too many.
func (s *state) add(pid int) *member {
	if len(s.members) >= s.options.MaxProcesses {
		s.log.Warn("process is not followed", "pid", pid, "error", ErrTooMany, "limit", s.options.MaxProcesses)
		s.unfollow(pid)
		return nil
	}
	m := &member{pid: pid}
	s.members[pid] = m
	delete(s.seen, pid)
	return m
}

// exclude keeps a process and its children out of the job.
func (s *state) exclude(pid int) {
	s.excluded[pid] = true
	s.unfollow(pid)
}

func (s *state) unfollow(pid int) {
	if !s.sourced {
		return
	}
	if err := s.options.Source.Remove(pid); err != nil {
		s.log.Warn("source goes on following", "pid", pid, "error", err)
	}
}
