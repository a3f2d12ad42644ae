// SPDX-License-Identifier: Apache-2.0

package procevent

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/procid"
)

// EventKind says what a process did.
type EventKind uint32

// Kinds of process events.
const (
	// EventFork: a member made a child process, which is now a member.
	EventFork EventKind = EventKind(processEventsProcessEventKindPROCESS_FORK)
	// EventExec: a member replaced its image.
	EventExec EventKind = EventKind(processEventsProcessEventKindPROCESS_EXEC)
	// EventExit: the last thread of a member ended; it is a member no more.
	EventExit EventKind = EventKind(processEventsProcessEventKindPROCESS_EXIT)
)

// String gives the name in lower case.
func (k EventKind) String() string {
	switch k {
	case EventFork:
		return "fork"
	case EventExec:
		return "exec"
	case EventExit:
		return "exit"
	}
	return "event " + strconv.FormatUint(uint64(k), 10)
}

// Event is one event of a member's life.
type Event struct {
	// Kind says what happened.
	Kind EventKind
	// Member says whether the process is a member, of job slot Slot. It is one
	// unless Options.NodeWide was given.
	Member bool
	Slot   uint32
	// PID is the process that the event is about; for EventFork the child.
	PID int
	// Parent is the parent's process id at the time of the event; 0 if it is
	// outside the controller's pid namespace.
	Parent int
	// UID is the real user id.
	UID uint32
	// Status is the wait status of EventExit, as waitpid(2) would give it.
	Status unix.WaitStatus
	// Time is CLOCK_MONOTONIC, in nanoseconds.
	Time uint64
	// Start is the start of the process as time since boot; with PID it
	// names the process for good.
	Start time.Duration
	// Command is the kernel's short name of the thread; at most 15 bytes.
	Command string
	// Taken is for EventExit with Options.Accounts, else nil: what the process took in
	// its whole life if it has executed a file of a wanted name, or anything as a member or
	// after Account, or comes of a process that has.
	Taken *Taken
	// Program is for EventExec, else nil. With Options.NodeWide it is
	// there for a file whose name is wanted.
	Program *Program
}

// Taken is what a process took, and what came of it and ended without having been a
// member.
type Taken struct {
	bpf.Taken
	// Unseen is how many those were.
	Unseen uint32
}

// Program is what a process has executed, as known in that moment: it may be
// all that there is to know of a process that lives for some microseconds.
type Program struct {
	// Device and Inode name the program's file, of a script its interpreter's;
	// as /proc/PID/maps has them, which for some file systems is not as
	// stat(2) has them.
	Device, Inode uint64
	// StartedAs is the path that execve(2) was given, a script's own: relative
	// perhaps, or through symbolic links. At most 255 bytes.
	StartedAs string
	// Arguments as in /proc/PID/cmdline, at most 512 bytes, and none where they
	// cannot be read at once.
	Arguments []byte
}

// StartTicks returns Start as field 22 of /proc/PID/stat shows it. In a time
// namespace with an offset the two differ by that.
func (e Event) StartTicks() uint64 { return uint64(e.Start / procid.Tick) }

func eventOf(raw *processEventsProcessEvent) Event {
	return Event{
		Kind:    EventKind(raw.Kind),
		Slot:    raw.Slot,
		Member:  raw.Member != 0,
		PID:     int(raw.Tgid),
		Parent:  int(raw.Parent),
		UID:     raw.Uid,
		Status:  unix.WaitStatus(raw.Status),
		Time:    raw.Time,
		Start:   time.Duration(raw.StartTime),
		Command: bpf.Text(raw.Comm[:]),
	}
}

// takenOf returns nil where something of it found no room.
func takenOf(raw *processEventsExitEvent) *Taken {
	if raw.Whole == 0 {
		return nil
	}
	return &Taken{bpf.TakenOf(&raw.Taken), raw.Unseen}
}

func programOf(raw *processEventsExecEvent) *Program {
	arguments := make([]byte, min(int(raw.ArgumentsSize), len(raw.Arguments)))
	for i := range arguments {
		arguments[i] = byte(raw.Arguments[i])
	}
	return &Program{
		Device: unix.Mkdev(raw.Device>>bpf.MinorBits, raw.Device&(1<<bpf.MinorBits-1)), Inode: raw.Inode,
		StartedAs: bpf.Text(raw.StartedAs[:]), Arguments: arguments,
	}
}
