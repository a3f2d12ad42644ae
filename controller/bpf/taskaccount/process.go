// SPDX-License-Identifier: Apache-2.0

package taskaccount

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/bpf"
)

// Process is one process with what its threads took that are done with.
type Process struct {
	Taken bpf.Taken
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
	return Process{
		Taken: bpf.TakenOf(&raw.Taken), PID: int(raw.Pid), Parent: int(raw.Parent),
		Start: time.Duration(raw.StartTime), End: time.Duration(raw.EndTime), Status: unix.WaitStatus(raw.Status),
		ResidentPages: raw.ResidentPeak, VirtualPages: raw.VirtualPeak, Threads: uint64(raw.Threads), Name: bpf.Text(raw.Comm[:]),
	}
}

// Totals is what all processes took, and how many there are. It also holds
// those whose own account was lost.
type Totals struct {
	// Taken is of all threads that are done with.
	Taken bpf.Taken
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
