// SPDX-License-Identifier: Apache-2.0

package sdk

import attunev1 "github.com/attune-hpc/attune/proto/attune/v1"

// Signal is one thing sampled from outside a process. Those that are not
// gauges count up over the life of the process; a Window turns them into
// rates. docs/reference/signals.md lists them with their sources.
type Signal uint8

// The signals. Times are nanoseconds.
const (
	// CPUUser is CPU time in user mode, in clock tick steps.
	CPUUser = Signal(attunev1.Signal_SIGNAL_CPU_USER)
	// CPUSystem is CPU time in the kernel, in clock tick steps.
	CPUSystem = Signal(attunev1.Signal_SIGNAL_CPU_SYSTEM)
	// RunTime is time on a CPU, all threads.
	RunTime = Signal(attunev1.Signal_SIGNAL_RUN_TIME)
	// RunqueueWait is time runnable but waiting for a CPU, all threads.
	RunqueueWait = Signal(attunev1.Signal_SIGNAL_RUNQUEUE_WAIT)
	// MinorFaults counts page faults served without I/O.
	MinorFaults = Signal(attunev1.Signal_SIGNAL_MINOR_FAULTS)
	// MajorFaults counts page faults that had to wait for I/O.
	MajorFaults = Signal(attunev1.Signal_SIGNAL_MAJOR_FAULTS)
	// ResidentBytes is resident memory (gauge).
	ResidentBytes = Signal(attunev1.Signal_SIGNAL_RESIDENT_BYTES)
	// VoluntarySwitches counts context switches of threads that had to wait.
	VoluntarySwitches = Signal(attunev1.Signal_SIGNAL_VOLUNTARY_SWITCHES)
	// InvoluntarySwitches counts context switches of threads that were
	// preempted or yielded.
	InvoluntarySwitches = Signal(attunev1.Signal_SIGNAL_INVOLUNTARY_SWITCHES)
	// Threads is the number of threads (gauge).
	Threads = Signal(attunev1.Signal_SIGNAL_THREADS)
	// RunnableThreads is the number of threads in state R (gauge).
	RunnableThreads = Signal(attunev1.Signal_SIGNAL_RUNNABLE_THREADS)
	// CPUsAllowed is the number of CPUs the process may run on (gauge).
	CPUsAllowed = Signal(attunev1.Signal_SIGNAL_CPUS_ALLOWED)
	// AnonymousBytes is resident memory without a file (gauge).
	AnonymousBytes = Signal(attunev1.Signal_SIGNAL_ANONYMOUS_BYTES)
	// ReadCalls counts system calls of the read(2) family; a child's are added
	// when it has been waited for. recv(2) is none of them.
	ReadCalls = Signal(attunev1.Signal_SIGNAL_READ_CALLS)
	// WriteCalls counts system calls of the write(2) family in the same way.
	WriteCalls = Signal(attunev1.Signal_SIGNAL_WRITE_CALLS)
	// ReadBytes counts the bytes that those calls read.
	ReadBytes = Signal(attunev1.Signal_SIGNAL_READ_BYTES)
	// WrittenBytes counts the bytes that those calls wrote.
	WrittenBytes = Signal(attunev1.Signal_SIGNAL_WRITTEN_BYTES)

	// Signals that a newer controller may send beyond these are dropped.
	signalCount = 24
)

// signalKind is what is to be known of one.
type signalKind struct {
	name  string
	gauge bool
}

// signals are named as in the proto, in small letters.
var signals = [signalCount]signalKind{
	CPUUser: {name: "cpu_user"}, CPUSystem: {name: "cpu_system"},
	RunTime: {name: "run_time"}, RunqueueWait: {name: "runqueue_wait"},
	MinorFaults: {name: "minor_faults"}, MajorFaults: {name: "major_faults"},
	ResidentBytes:     {name: "resident_bytes", gauge: true},
	VoluntarySwitches: {name: "voluntary_switches"}, InvoluntarySwitches: {name: "involuntary_switches"},
	Threads: {name: "threads", gauge: true}, RunnableThreads: {name: "runnable_threads", gauge: true},
	CPUsAllowed: {name: "cpus_allowed", gauge: true}, AnonymousBytes: {name: "anonymous_bytes", gauge: true},
	ReadCalls: {name: "read_calls"}, WriteCalls: {name: "write_calls"},
	ReadBytes: {name: "read_bytes"}, WrittenBytes: {name: "written_bytes"},
}

// String returns the signal's name, e.g. "run_time"; "" for one that there is
// not.
func (s Signal) String() string {
	if s >= signalCount {
		return ""
	}
	return signals[s].name
}

// Gauge says whether the signal is a value of its own, and no counter.
func (s Signal) Gauge() bool { return s < signalCount && signals[s].gauge }

// SignalNamed returns the signal of a name, and whether there is one.
func SignalNamed(name string) (Signal, bool) {
	for s, known := range signals {
		if name != "" && known.name == name {
			return Signal(s), true
		}
	}
	return 0, false
}

// Signals lists all signals.
func Signals() (all []Signal) {
	for s, known := range signals {
		if known.name != "" {
			all = append(all, Signal(s))
		}
	}
	return all
}
