// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Signal is one thing sampled from outside a process. Those that are not
// gauges count up over the life of the process; a Window turns them into
// rates.
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

	// Signals that a newer controller may send beyond these are dropped.
	signalCount = 16
)

// Sample is all signals of one process at one time. It is a plain value: copy
// it freely.
type Sample struct {
	// Process that was sampled.
	Process Handle
	// At is when.
	At time.Time

	values  [signalCount]float64
	present uint32
}

// Value returns a signal's value, and whether it was read at all.
func (s *Sample) Value(sig Signal) (float64, bool) {
	if sig >= signalCount || s.present&(1<<sig) == 0 {
		return 0, false
	}
	return s.values[sig], true
}

// With returns a copy of the sample that has the signal set to the value.
// Tests build samples with it.
func (s Sample) With(sig Signal, value float64) Sample {
	if sig < signalCount {
		s.values[sig] = value
		s.present |= 1 << sig
	}
	return s
}

// Samples are the samples of one round, at most one per process.
type Samples struct {
	// At is when the round was made.
	At time.Time
	// Items are the samples; owned by the tunlet.
	Items []Sample
}

func samplesFrom(b *attunev1.SampleBatch) Samples {
	out := Samples{At: time.Unix(0, b.GetUnixNano())}
	out.Items = make([]Sample, 0, len(b.GetSamples()))
	for _, s := range b.GetSamples() {
		sample := Sample{Process: Handle(s.GetProcess()), At: out.At}
		for _, r := range s.GetReadings() {
			if sig := r.GetSignal(); sig > 0 && sig < signalCount {
				sample.values[sig] = r.GetValue()
				sample.present |= 1 << sig
			}
		}
		out.Items = append(out.Items, sample)
	}
	return out
}
