// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

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
	taken     *attunev1.Taken
	watched   bool
	suspected bool // was not alive at the last scan
}

// linkedIn lists what is in the executable as an object would be. That does not
// change as long as the process runs it.
func (m *member) linkedIn(by *readers.Pool) []string {
	if m.linked == nil {
		m.linked, _ = readLinkedOf().Ask(context.Background(), by, m.message.Uid, m.pid) // looked for again
	}
	return m.linked
}

const (
	// sameExec is how long before an exec event the new image may already be
	// seen in /proc. Beyond it an image that looks the same is a new one, of a
	// program that runs without address randomisation.
	sameExec = uint64(50 * time.Millisecond)
	// sameExecGone is the same for a process that cannot be looked at any more.
	sameExecGone = uint64(5 * time.Millisecond)
)

// sameExec says whether an exec event, later than what is known, tells of the
// image that is known: the kernel shows it in /proc before it tells.
func (m *member) sameExec(e Event) bool {
	if e.Time != 0 && e.Time-m.known >= sameExec {
		return false
	}
	stat, err := procid.ReadStat(m.pid)
	if err != nil || stat.Zombie() {
		return m.held != nil && e.Time-m.known < sameExecGone
	}
	return m.hasImage(stat)
}

// sameImage says whether the process still has the image that was described.
func (m *member) sameImage() bool {
	stat, err := procid.ReadStat(m.pid)
	return err == nil && m.hasImage(stat) && stat.Image != procid.Image{}
}

// hasImage says whether a stat file is that of the image that was described. An
// image that does not show, because the process is just ending, is no other.
func (m *member) hasImage(stat procid.Stat) bool {
	_, image := shown(m.pid, stat)
	return (image == m.image || image == procid.Image{}) && stat.StartTicks == m.message.GetIdentity().GetStartTicks()
}

// livesOn says whether the process lives though one of its threads has ended.
func (m *member) livesOn() bool {
	if m.held != nil {
		return m.held.Alive()
	}
	stat, err := procid.ReadStat(m.pid)
	return err == nil && !procid.Dying(m.pid, stat)
}

// latest is the last event that is known of a process with no image told of.
func (m *member) latest() Event {
	if m.pending != nil {
		return *m.pending
	}
	return m.born
}

// over is when the image ended: not before it was seen, though the clocks are read
// one after the other.
func (m *member) over(at uint64) int64 { return max(unixNano(at), m.message.GetSeenUnixNano()) }

// release lets go of the process.
func (m *member) release() {
	if m.held != nil {
		m.held.Close()
		m.held = nil
	}
}

// exit says that the process of held has ended.
type exit struct {
	member *member
	held   *procid.Process
}

// watchers wait for the ends of processes whose source does not tell of them, in a
// goroutine each. watch and close are called by the goroutine that has the members.
type watchers struct {
	exits chan exit
	stop  chan struct{}
	group sync.WaitGroup
}

func newWatchers() *watchers { return &watchers{exits: make(chan exit), stop: make(chan struct{})} }

// watch waits for a process's end by its pidfd.
func (w *watchers) watch(m *member) {
	if m.watched || m.held == nil {
		return
	}
	m.watched = true
	held := m.held
	w.group.Go(func() {
		// The context need not end: release closes what nobody needs any more.
		if held.Wait(context.Background()) != nil {
			return
		}
		select {
		case w.exits <- exit{m, held}:
		case <-w.stop:
		}
	})
}

// close waits for all of them, when what they wait for is released.
func (w *watchers) close() {
	close(w.stop)
	w.group.Wait()
}
