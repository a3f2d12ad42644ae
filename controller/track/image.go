// SPDX-License-Identifier: Apache-2.0

package track

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// images tells the Handler of images, and how they end.
type images struct {
	host, boot string
	handler    Handler
	feed       *feed
	members    *members
	agenda     *agenda
	watchers   *watchers
	hasher     *hasher

	programs programs
	handle   uint64 // last one given
}

// remains is all that is known of a process that was too short-lived to be
// read: a fork is what its parent was, an exec has the name that came with the
// event.
func (i *images) remains(m *member, e Event) *description {
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
			message.CommandLine = []string{strings.ToValidUTF8(e.Command, "?")} // 15 bytes, cut anywhere
		}
		if e.HasUID {
			message.Uid = e.UID
		}
		i.programs.describe(message, e.Program)
	}
	message.Available = nil // told with what was followed
	message.ParentPid = int32(m.born.Parent)
	for _, from := range []Event{m.born, e} {
		if from.HasUID {
			message.Uid = from.UID
		}
	}
	start := max(e.StartTicks, m.born.StartTicks, m.message.GetIdentity().GetStartTicks())
	message.Identity = &attunev1.ProcessIdentity{
		BootId: i.boot, Pid: int32(m.pid), StartTicks: start,
		ExeDevice: message.GetIdentity().GetExeDevice(), ExeInode: message.GetIdentity().GetExeInode(),
	}
	return &description{message: message, at: max(m.known, e.Time)}
}

// bequest is what the children of a process inherit; nil: nothing is known of it.
func (i *images) bequest(m *member) *attunev1.Process {
	switch {
	case m.pending != nil:
		return i.remains(m, *m.pending).message
	case m.message != nil:
		return m.message
	}
	return m.inherited
}

// tell makes a description the member's image, with a new handle.
func (i *images) tell(m *member, d *description) {
	began := d.at
	if m.message != nil {
		i.replaced(m, 0)
	} else if e := m.latest(); e.Time != 0 {
		began = e.Time
	}
	m.pending = nil
	i.handle++
	m.message, m.held, m.image, m.virtual = d.message, d.held, d.image, 0
	m.linked = nil
	m.known, m.registered, m.refreshes, m.status = max(m.known, d.at), false, 0, nil
	m.watched, m.suspected, m.digesting, m.final = false, false, false, false
	m.message.Handle, m.message.Host, m.message.SeenUnixNano = i.handle, i.host, unixNano(began)
	if m.held != nil {
		if sum, ok := i.hasher.known(m.pid); ok {
			m.message.ExecutableSha256 = sum
		}
	}
	i.members.byHandle[i.handle] = m
	i.members.setSession(m, d.session)
	i.handler.Started(m.message, m.held)
	if m.held == nil {
		return
	}
	i.hasher.request(m)
	i.agenda.schedule(m, refreshDelay(0))
	if !i.feed.on {
		i.watchers.watch(m)
	}
}

// replaced tells that an exec has ended the present image, then (CLOCK_MONOTONIC)
// or just now (0).
func (i *images) replaced(m *member, at uint64) {
	delete(i.members.byHandle, m.message.GetHandle())
	i.handler.Ended(&attunev1.ProcessEnded{
		Process: m.message.GetHandle(), ReplacedByExec: true, EndedUnixNano: m.over(at),
	})
	m.message = nil
	m.release()
}

// end tells that a process has ended and forgets it.
func (i *images) end(m *member) {
	if m.message == nil {
		i.tell(m, i.remains(m, m.latest()))
	}
	if m.held != nil && !m.final {
		// The kernel's own account is right also where the first thread ended
		// before the others.
		if status, ok := m.held.ExitStatus(); ok {
			m.status = &status
		}
	}
	i.handler.Ended(&attunev1.ProcessEnded{
		Process: m.message.GetHandle(), WaitStatus: m.status, EndedUnixNano: m.over(m.endedAt), Taken: m.taken,
	})
	i.members.forget(m)
}

// takenOf is what a process took as the Analyzer is told it; nil of nil.
func takenOf(t *procevent.Taken) *attunev1.Taken {
	if t == nil {
		return nil
	}
	user, _ := t.Shares()
	return &attunev1.Taken{
		CpuNanos: t.Runtime, UserNanos: uint64(user), CpuWaitNanos: t.Wait,
		ReadBytes: t.ReadChars, WrittenBytes: t.WrittenChars, ReadCalls: t.ReadCalls, WrittenCalls: t.WrittenCalls,
		StorageReadBytes: t.ReadBytes, StorageWrittenBytes: t.Storage(),
		VoluntarySwitches: t.Voluntary, InvoluntarySwitches: t.Involuntary, MinorFaults: t.MinorFaults, MajorFaults: t.MajorFaults,
		UnseenProcesses: uint64(t.Unseen),
	}
}

// change replaces the message by a changed copy and tells of it.
func (i *images) change(m *member, change func(*attunev1.Process)) {
	changed := proto.CloneOf(m.message)
	change(changed)
	m.message = changed
	i.handler.Changed(changed)
}
