// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// state is everything that changes while a job runs. It is touched by the
// goroutine of Tracker.loop alone, by the methods in this file (what happens to
// a process), scan.go (what is found in /proc) and refresh.go (what becomes
// known later); that is why there is no lock. The only other goroutines that
// know of it are those of watch, which wait for a pidfd and post to exits.
type state struct {
	options             Options
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
	seen map[int]int
	due  dueHeap

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

	// message of the image that was told of; nil: none was yet.
	message    *attunev1.Process
	held       *procid.Process
	image      procid.Image
	virtual    uint64
	session    int
	registered bool
	digesting  bool
	refreshes  int

	status    *int32
	watched   bool
	suspected bool // was not alive at the last scan
}

// exit says that the process of held has ended.
type exit struct {
	member *member
	held   *procid.Process
}

const (
	// forkGrace is how long a forked process may take to exec before it is
	// told of as an image of its own.
	forkGrace = 20 * time.Millisecond
	// sameExec is how long before an exec event the new image may already be
	// seen in /proc. Beyond it an image that looks the same is a new one, of a
	// program that runs without address randomisation.
	sameExec = uint64(50 * time.Millisecond)
	// youngScans is for how many scans a process that does not belong is
	// looked at again: it may yet exec into the job.
	youngScans = 10
	// digestQueue bounds executables that wait to be hashed.
	digestQueue = 1024
)

func newState(t *Tracker, host, boot string, ownDevice, ownInode uint64) *state {
	return &state{
		options: t.options, log: t.log, host: host, boot: boot, ownDevice: ownDevice, ownInode: ownInode,
		sourced: t.options.Source != nil,
		members: make(map[int]*member), handles: make(map[uint64]*member),
		sessions: make(map[int]bool), excluded: make(map[int]bool), seen: make(map[int]int),
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
		if m.inherited = parent.message; m.inherited == nil {
			m.inherited = parent.inherited
		}
	}
	s.schedule(m, forkGrace)
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
	case m.message != nil && (e.Time == 0 || e.Time-m.known < sameExec) && s.sameImage(m):
		return
	}
	s.look(m, e)
}

// sameImage says whether the process still has the image that was described.
func (s *state) sameImage(m *member) bool {
	stat, err := procid.ReadStat(m.pid)
	return err == nil && s.isImage(m, stat) && stat.Image != procid.Image{}
}

// look describes a process's present image and tells of it. What the process
// has left no time to describe is told as far as the event knows it.
func (s *state) look(m *member, e Event) {
	d, err := describe(m.pid)
	switch {
	case err == nil:
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
	}
	message.ParentPid = int32(m.born.Parent)
	for _, from := range []Event{m.born, e} {
		if from.HasUID {
			message.Uid = from.UID
		}
	}
	message.Identity = &attunev1.ProcessIdentity{
		BootId: s.boot, Pid: int32(m.pid), StartTicks: max(e.StartTicks, m.born.StartTicks),
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
	case !m.root && s.foreign(d):
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
		s.replaced(m)
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
	if m.message != nil {
		s.replaced(m)
	}
	s.handle++
	m.message, m.held, m.image, m.virtual = d.message, d.held, d.image, d.virtual
	m.known, m.registered, m.refreshes, m.status = max(m.known, d.at), false, 0, nil
	m.watched, m.suspected, m.digesting = false, false, false
	m.message.Handle, m.message.Host, m.message.SeenUnixNano = s.handle, s.host, time.Now().UnixNano()
	if sum, ok := s.options.Digests.Known(procPath(m.pid, "exe")); ok && d.held != nil {
		m.message.ExecutableSha256 = sum
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

// replaced tells that an exec has ended the present image.
func (s *state) replaced(m *member) {
	delete(s.handles, m.message.GetHandle())
	s.options.Handler.Ended(&attunev1.ProcessEnded{
		Process: m.message.GetHandle(), ReplacedByExec: true, EndedUnixNano: time.Now().UnixNano(),
	})
	m.message = nil
	s.release(m)
}

func (s *state) release(m *member) {
	if m.held != nil {
		m.held.Close()
		m.held = nil
	}
}

// ended handles an exit that the source tells of.
func (s *state) ended(e Event) {
	delete(s.excluded, e.PID)
	m := s.members[e.PID]
	if m == nil || e.Time != 0 && e.Time < m.known {
		return // not ours, or of an earlier process with this pid
	}
	if m.message == nil {
		s.tell(m, s.remains(m, m.born))
	}
	if e.HasStatus {
		m.status = &e.Status
	}
	if !e.Last && m.held != nil && m.held.Alive() {
		s.watch(m) // other threads live on, or it is just about to be dead
		return
	}
	s.end(m)
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
		s.tell(m, s.remains(m, m.born))
	}
	if m.held != nil {
		// The kernel's own account is right also where the first thread ended
		// before the others.
		if status, ok := m.held.ExitStatus(); ok {
			m.status = &status
		}
	}
	s.options.Handler.Ended(&attunev1.ProcessEnded{
		Process: m.message.GetHandle(), WaitStatus: m.status, EndedUnixNano: time.Now().UnixNano(),
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

// adopt makes a process a member and tells of it.
func (s *state) adopt(pid int) (*member, error) {
	d, err := describe(pid)
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
	s.present(m, d)
	if m = s.members[pid]; m == nil {
		return nil, ErrForeign
	}
	return m, nil
}

func (s *state) follow(pid int) (uint64, error) {
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
		d, err := describe(pid)
		if err != nil {
			s.forget(m)
			return 0, err
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
	s.refresh(m, true)
	return m.message.GetHandle(), nil
}

func (s *state) update(handle uint64, change func(*attunev1.Process)) error {
	m := s.handles[handle]
	if m == nil {
		return ErrUnknownHandle
	}
	s.change(m, change)
	return nil
}

// change replaces the message by a changed copy and tells of it.
func (s *state) change(m *member, change func(*attunev1.Process)) {
	changed := proto.CloneOf(m.message)
	change(changed)
	m.message = changed
	s.options.Handler.Changed(changed)
}

func (s *state) processes() []*attunev1.Process {
	processes := make([]*attunev1.Process, 0, len(s.handles))
	for _, m := range s.handles {
		processes = append(processes, m.message)
	}
	slices.SortFunc(processes, func(a, b *attunev1.Process) int { return int(int64(a.Handle) - int64(b.Handle)) })
	return processes
}

func (s *state) sourceEnded(err error) {
	s.log.Warn("process events have ended; /proc is polled, short-lived processes are missed", "error", err)
	s.sourced = false
	for _, m := range s.members {
		s.watch(m)
	}
}
