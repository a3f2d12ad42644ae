// SPDX-License-Identifier: Apache-2.0

package track

import (
	"time"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
)

// monotonic is the clock of the kernel's events, in nanoseconds.
func monotonic() uint64 { return uint64(clock.Monotonic()) }

// unixNano is the time of day at a time of the monotonic clock; now for 0.
func unixNano(at uint64) int64 {
	if at == 0 {
		return time.Now().UnixNano()
	}
	return int64(at) + clock.UnixOffset().Nanoseconds()
}

// beforeStart says whether a time of the monotonic clock, in nanoseconds, lies
// before the start of a process. Start times count from boot, suspended time
// included, which the monotonic clock leaves out.
func beforeStart(at, startTicks uint64) bool {
	passed := clock.Monotonic()
	suspended := uint64(max(clock.SinceBoot()-passed, 0))
	return at+suspended < startTicks*uint64(procid.Tick)
}
