// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/attune-hpc/attune/tunlets/sdk"

const (
	// leastCalls of write(2) per second that are worth looking at: at 0.5 µs each,
	// measured with /dev/null, fewer cost less than a hundredth of the time. Say
	// here where each constant of yours comes from.
	leastCalls = 20_000
	// smallBytes: a call that writes more than that costs little per byte.
	smallBytes = 512
	// mostShare keeps the gain finite.
	mostShare = 0.95
)

// load is what a process writes, per second, and the share of its CPU time that
// it spends in the kernel.
type load struct{ calls, bytes, system float64 }

// loadOf reads a load from a span; false if the signals were not read.
func loadOf(s sdk.Span) (load, bool) {
	calls, okCalls := s.Rate(sdk.WriteCalls)
	bytes, okBytes := s.Rate(sdk.WrittenBytes)
	user, okUser := s.Rate(sdk.CPUUser)
	system, okSystem := s.Rate(sdk.CPUSystem)
	if !okCalls || !okBytes || !okUser || !okSystem || user+system == 0 {
		return load{}, false
	}
	return load{calls, bytes, system / (user + system)}, true
}

// symptom says whether the process writes often and little.
func (l load) symptom() bool { return l.calls > leastCalls && l.bytes < smallBytes*l.calls }

// gain is how many times faster the program gets with one call for each batch:
// what the calls cost is its time in the kernel, which is divided by batch.
func (l load) gain(batch float64) float64 {
	return 1 / (1 - min(mostShare, l.system)*(1-1/batch))
}
