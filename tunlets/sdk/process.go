// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"path"
	"slices"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Handle names one process image within a session; never reused. An exec
// makes a new one.
type Handle uint64

// Scope is that of an objective which is about this one process; see [Host.Objective].
func (h Handle) Scope() string { return fmt.Sprintf("process/%d", h) }

// Process is all that is known about one process image.
type Process struct {
	// Handle by which everything else refers to it.
	Handle Handle
	// Update is set when the process was announced before.
	Update bool
	// PID and ParentPID are process ids on the process' own node.
	PID, ParentPID int
	// Host is the node's name.
	Host string
	// Executable is the path as the kernel knows it.
	Executable string
	// Command is its command line.
	Command []string
	// Rank is the MPI rank that the launcher gave; -1 outside MPI.
	Rank int
	// Objects are the shared objects that it has mapped, by path; of a program in
	// Go also "linked:go", which stands for the run-time in it.
	Objects []string
	// CPUsAllowed is the number of CPUs that it may run on; 0: unknown.
	CPUsAllowed int
	// CPUsUsable are the CPUs that its threads could be given by thread.affinity:
	// those that its cpuset leaves to it and that the controller itself may use;
	// so who starts Attune on some CPUs keeps the application there. Not told at
	// first, but some 10 ms later; empty: unknown.
	CPUsUsable CPUList
	// Mechanisms are the ways into the process.
	Mechanisms []Mechanism
}

// Mechanism is one way into a process, and whether it is open.
type Mechanism struct {
	// Name as `attune doctor` prints it.
	Name string
	// Available says whether the process can be reached by it.
	Available bool
	// Reason says why not, or names a restriction.
	Reason string
}

// Maps reports whether an object is mapped whose base name matches the
// pattern (path.Match), e.g. "libmpi.so*".
func (p Process) Maps(pattern string) bool {
	return slices.ContainsFunc(p.Objects, func(object string) bool {
		ok, err := path.Match(pattern, path.Base(object))
		return ok && err == nil
	})
}

// ProcessEnd tells how a process ended.
type ProcessEnd struct {
	// Handle of the process.
	Handle Handle
	// ReplacedByExec is set when the pid lives on with another image.
	ReplacedByExec bool
	// At is when it ended.
	At time.Time
	// Lost counts records of this process that were lost on the way.
	Lost uint64
}

func processFrom(p *attunev1.Process, update bool) Process {
	out := Process{
		Handle: Handle(p.GetHandle()), Update: update,
		PID: int(p.GetIdentity().GetPid()), ParentPID: int(p.GetParentPid()),
		Host: p.GetHost(), Executable: p.GetExecutable(), Command: p.GetCommandLine(),
		Rank: -1, Objects: p.GetObjects(), CPUsAllowed: int(p.GetCpusAllowed()),
		CPUsUsable: CPUList(p.GetCpusUsable()),
	}
	if p != nil && p.Rank != nil {
		out.Rank = int(p.GetRank())
	}
	for _, m := range p.GetMechanisms() {
		out.Mechanisms = append(out.Mechanisms, Mechanism{
			Name: m.GetName(), Available: m.GetAvailable(), Reason: m.GetReason(),
		})
	}
	return out
}

func endFrom(e *attunev1.ProcessEnded) ProcessEnd {
	return ProcessEnd{
		Handle: Handle(e.GetProcess()), ReplacedByExec: e.GetReplacedByExec(),
		At: time.Unix(0, e.GetEndedUnixNano()), Lost: e.GetLostRing() + e.GetLostNoSlot() + e.GetLostBpf(),
	}
}
