// SPDX-License-Identifier: Apache-2.0

package taskaccount

import (
	"structs"
	"time"

	"golang.org/x/sys/unix"
)

// Taken is what threads took that the kernel is done with. Times are in
// nanoseconds. The layout is that of struct taken in task_account.bpf.c.
type Taken struct {
	_ structs.HostLayout
	// Runtime is CPU time, to the nanosecond; Wait is time in which they could have run
	// and had no CPU. User and System are what the
	// kernel's ticks saw of it: their shares count, not their sum.
	Runtime, Wait, User, System uint64
	// ReadChars and WrittenChars are bytes that system calls moved, by
	// ReadCalls and WrittenCalls.
	ReadChars, WrittenChars, ReadCalls, WrittenCalls uint64
	// ReadBytes and WrittenBytes are those of storage; CancelledBytes of the
	// latter were of files that were removed before.
	ReadBytes, WrittenBytes, CancelledBytes uint64
	// Voluntary and Involuntary are context switches.
	Voluntary, Involuntary   uint64
	MinorFaults, MajorFaults uint64
}

// Shares divides Runtime into time outside of the kernel and time in it, as
// wait4(2) does.
func (t Taken) Shares() (user, system time.Duration) {
	seen := t.User + t.System
	if t.System == 0 || seen == 0 {
		return time.Duration(t.Runtime), 0
	}
	system = time.Duration(float64(t.Runtime) * (float64(t.System) / float64(seen)))
	return time.Duration(t.Runtime) - system, system
}

// Process is one process with what its threads took that are done with.
type Process struct {
	Taken Taken
	// PID and Parent as the caller's pid namespace numbers them; 0: outside.
	PID, Parent int
	// Start and End are times since boot; End is 0 while it lives.
	Start, End time.Duration
	// Status is the wait status, once it has ended.
	Status unix.WaitStatus
	// ResidentPages and VirtualPages are the peaks of its own memory; 0: the
	// kernel does not tell.
	ResidentPages, VirtualPages uint64
	// Threads is how many it had in all.
	Threads uint64
	// Name is the kernel's, of its last thread: at most 15 bytes.
	Name string
}

func processOf(raw *taskAccountProcessAccount) Process {
	name := make([]byte, 0, len(raw.Comm))
	for _, c := range raw.Comm {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	return Process{
		Taken: Taken(raw.Taken), PID: int(raw.Pid), Parent: int(raw.Parent),
		Start: time.Duration(raw.StartTime), End: time.Duration(raw.EndTime), Status: unix.WaitStatus(raw.Status),
		ResidentPages: raw.ResidentPeak, VirtualPages: raw.VirtualPeak, Threads: uint64(raw.Threads), Name: string(name),
	}
}

// Totals is what all processes took, and how many there are. It also holds
// those whose own account was lost.
type Totals struct {
	// Taken is of all threads that are done with.
	Taken Taken
	// Processes came until now; Peak is the most that were alive at one time.
	Processes, Peak uint64
	// Alive have a thread that has not ended. Done are done with: of the rest
	// the kernel still has to add something up, within microseconds.
	Alive, Done uint64
	// LostProcesses are in the totals and were not handed over, LostMembers are
	// nowhere.
	LostProcesses, LostMembers uint64
}

// Settled says whether everything of processes that have ended is added up.
func (t Totals) Settled() bool { return t.Processes == t.Done+t.Alive }
