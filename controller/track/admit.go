// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
)

// admission says who belongs to the job, and tells of images of those that do.
type admission struct {
	jobID     string
	feed      *feed
	outsiders *outsiders
	members   *members
	images    *images
	readers   *readers.Pool
	log       *slog.Logger
}

// belongs looks whether a process that is no member yet is one of the job.
func (a *admission) belongs(pid int) bool {
	stat, err := procid.ReadStat(pid)
	if err != nil || stat.Zombie() || pid == os.Getpid() || a.outsiders.excluded[pid] {
		return false
	}
	// A thread of the kernel never executes anything. A process whose first thread has
	// ended has no memory there either, but other threads.
	if stat.VirtualBytes == 0 && stat.Threads == 1 {
		a.outsiders.seen[pid] = youngScans
		return false
	}
	live := procid.LiveThread(pid, stat)
	if device, inode, _ := procid.ExecutableFile(live); a.outsiders.isOwn(device, inode) || a.outsiders.excluded[stat.ParentPID] {
		// Attune itself, or a tunlet of it. Our own child is perhaps just
		// about to exec.
		if stat.ParentPID != os.Getpid() {
			a.outsiders.exclude(pid)
		}
		return false
	}
	related := a.members.has(stat.ParentPID) || a.members.sessions[stat.Session]
	if !related && a.jobID == "" {
		return false // whatever its environment says, which may be anybody's
	}
	shows, err := readSeen().Ask(context.Background(), a.readers, readUID(live), seenQuestion{Thread: live, PID: pid})
	switch {
	case err != nil || shows.Off:
		return false
	case shows.Job != "":
		return shows.Job == a.jobID
	}
	return related
}

// adopt makes a process a member and tells of it.
func (a *admission) adopt(pid int) (*member, error) {
	d, err := describe(a.readers, pid, Event{})
	if err != nil {
		return nil, err
	}
	m := a.members.byPID[pid]
	if !a.feed.follow(pid) && m == nil {
		d.held.Close()
		return nil, procid.ErrGone
	}
	if m == nil {
		if m = a.members.add(pid); m == nil {
			d.held.Close()
			return nil, ErrTooMany
		}
	}
	off := d.off
	a.present(m, d)
	m = a.members.byPID[pid]
	switch {
	case off:
		return nil, ErrOff
	case m == nil:
		return nil, ErrForeign
	}
	return m, nil
}

// look describes a process's present image and tells of it. What the process
// has left no time to describe is told as far as the event knows it.
func (a *admission) look(m *member, e Event) {
	d, err := describe(a.readers, m.pid, e)
	switch {
	case err == nil:
		if isAnother(d.message, e.Program) {
			a.images.tell(m, a.images.remains(m, e)) // it executes another one by now
		}
		a.present(m, d)
		return
	case !errors.Is(err, procid.ErrGone) && !errors.Is(err, readers.ErrRefused): // that is logged once
		a.log.Warn("process cannot be described", "pid", m.pid, "error", err)
	}
	a.images.tell(m, a.images.remains(m, e))
}

// present tells of a description unless its process is none of the job's.
func (a *admission) present(m *member, d *description) {
	start := m.message.GetIdentity().GetStartTicks()
	switch {
	case m.message != nil && start != d.message.GetIdentity().GetStartTicks():
		root := m.root
		a.images.end(m) // another process has the pid by now
		if m = a.members.add(m.pid); m == nil {
			d.held.Close()
			return
		}
		m.root = root
	case d.off, !m.root && a.foreign(d):
		a.leave(m, d)
		return
	}
	if m.root {
		d.tellAvailable()
	}
	a.images.tell(m, d)
}

// foreign says whether a description is of Attune itself or another job.
func (a *admission) foreign(d *description) bool {
	identity := d.message.GetIdentity()
	return a.outsiders.isOwn(identity.GetExeDevice(), identity.GetExeInode()) || d.job != "" && d.job != a.jobID
}

// leave forgets a process that has left the job by its last exec.
func (a *admission) leave(m *member, d *description) {
	d.held.Close()
	identity := d.message.GetIdentity()
	if m.message != nil {
		a.images.replaced(m, 0)
	}
	a.members.forget(m)
	if a.outsiders.isOwn(identity.GetExeDevice(), identity.GetExeInode()) {
		a.outsiders.exclude(m.pid)
		return
	}
	a.feed.unfollow(m.pid)
}
