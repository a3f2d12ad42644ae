// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Kind says what a process did.
type Kind int

// Kinds of events.
const (
	// Fork: PID was born as a child of Parent.
	Fork Kind = iota + 1
	// Exec: PID runs another image.
	Exec
	// Exit: a thread group's last thread ended if Last is set, else perhaps
	// the first thread only.
	Exit
)

// Event is one event in the life of a process.
type Event struct {
	Kind Kind
	// PID of the process (not of a thread).
	PID int
	// Parent's process id, for Fork.
	Parent int
	// Member says that the source follows the job by itself, so that whatever
	// it tells of belongs to it.
	Member bool
	// Last is for Exit: no thread is left.
	Last bool
	// Status is for Exit, as waitpid(2) tells it, where HasStatus is set.
	Status    int32
	HasStatus bool
	// Time is CLOCK_MONOTONIC in nanoseconds; 0 if unknown.
	Time uint64
	// StartTicks of the process, as in /proc/PID/stat; 0 if unknown.
	StartTicks uint64
	// UID is the user id where HasUID is set.
	UID    uint32
	HasUID bool
	// Command is the kernel's short name; "" if unknown.
	Command string
	// Taken is for Exit: what the process took in its whole life; nil if unknown.
	Taken *procevent.Taken
	// Program is for Exec: what is executed, as the kernel saw it; nil if unknown.
	Program *procevent.Program
}

// Source tells what processes do, in the order in which it happened.
type Source interface {
	// Add asks to follow a process and what it forks from now on. [procid.ErrGone] if
	// it is at its end, and Run will not tell of that. After another error it is asked for
	// again at each scan.
	Add(pid int) error
	// Remove asks not to follow a process any more.
	Remove(pid int) error
	// Run calls handle for each event until ctx ends.
	Run(ctx context.Context, handle func(Event)) error
	// Lost returns how many events were lost so far.
	Lost() uint64
	// Close ends the source.
	Close() error
}

// Handler is told about processes. Messages must not be changed; they are not
// changed either once they were handed over.
type Handler interface {
	// Started tells of a new image. held is nil for a process that ended before
	// it could be held; it stays open until Ended for this handle has returned.
	Started(process *attunev1.Process, held *procid.Process)
	// Changed tells everything that is known now.
	Changed(process *attunev1.Process)
	// Ended tells that the image is gone: with ReplacedByExec, the pid has
	// another one, which is told of next. Counts of lost records are not set.
	Ended(ended *attunev1.ProcessEnded)
}
