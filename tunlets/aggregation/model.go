// SPDX-License-Identifier: Apache-2.0

package aggregation

import (
	"math"

	"github.com/attune-hpc/attune/tunlets/sdk"
)

const (
	// leastMessages per second; fewer are not worth a change, whatever each costs.
	leastMessages = 20_000
	// leastGain is what the change must promise.
	leastGain = 1.1
)

// traffic is what a process sends, and what that costs it.
type traffic struct {
	// messages per second, and bytes in them.
	messages, bytes float64
	// user and system are the seconds of CPU time per second outside and inside of
	// the kernel.
	user, system float64
}

// trafficOf reads a span. False if signals are missing.
func trafficOf(s sdk.Span) (traffic, bool) {
	messages, okMessages := s.Rate(sdk.WriteCalls)
	bytes, okBytes := s.Rate(sdk.WrittenBytes)
	run, okRun := s.Rate(sdk.RunTime)
	system, okSystem := s.Rate(sdk.CPUSystem)
	system = min(system, run) // it is counted in ticks
	return traffic{
		messages: messages, bytes: bytes, user: (run - system) * 1e-9, system: system * 1e-9,
	}, okMessages && okBytes && okRun && okSystem
}

// plan is how many items to send in a message, and what is gained by it.
type plan struct {
	items int64
	gain  float64
	// latency is the cost of a message, and work that of an item, seconds.
	latency, work float64
}

// planFor is the best plan for a process whose messages have so many items now, at
// most so many. A message costs at least the given latency, seconds.
//
// Own derivation. A message costs a fixed time l, however many items are in it, and
// items are made at a rate r. With k of them in a message each has l/k of that cost,
// and waits on average for half of the time in which the others are made, k/(2r).
// Their sum is least at k* = sqrt(2·l·r).
//
// What the kernel does for a process that sends all the time is the least that l can
// be; where the way to the receiver is longer and each message is waited for, it has
// to be told. r is the rate at which items would be made if nothing had to be sent:
// one per share of the CPU time outside of the kernel. The gain is that of the time
// per item, work + l/k.
func planFor(t traffic, present, most int64, latency float64) (p plan, ok bool) {
	if t.messages < leastMessages || t.user <= 0 || present < 1 {
		return plan{}, false
	}
	cost := t.system / t.messages
	p.latency = max(cost, latency)
	p.work = t.user / (t.messages * float64(present))
	p.items = min(most, int64(math.Ceil(math.Sqrt(2*p.latency/p.work))))
	p.gain = (p.work + cost/float64(present)) / (p.work + cost/float64(max(1, p.items)))
	return p, p.items > present && p.gain >= leastGain
}
