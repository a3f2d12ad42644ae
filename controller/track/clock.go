// SPDX-License-Identifier: Apache-2.0

package track

import (
	"math"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
)

// monotonic is the clock of the kernel's events, in nanoseconds.
func monotonic() uint64 { return uint64(clock.Monotonic()) }

// Two clocks are read as one if no more time than together passes meanwhile, or at the best of
// some tries: a thread may have to wait for a CPU in between.
const (
	together = 20 * time.Microsecond
	tries    = 10
)

// unixNano is the time of day at a time of the monotonic clock; now for 0.
func unixNano(at uint64) int64 {
	if at == 0 {
		return time.Now().UnixNano()
	}
	best, unix := time.Duration(math.MaxInt64), int64(0)
	for n := 0; n < tries && best > together; n++ {
		before := monotonic()
		now := time.Now().UnixNano()
		if passed := time.Duration(monotonic() - before); passed < best {
			best, unix = passed, now-int64(before-at)
		}
	}
	return unix
}

// beforeStart says whether a time of the monotonic clock, in nanoseconds, lies
// before the start of a process. Start times count from boot, suspended time
// included, which the monotonic clock leaves out.
func beforeStart(at, startTicks uint64) bool {
	passed := clock.Monotonic()
	suspended := uint64(max(clock.SinceBoot()-passed, 0))
	return at+suspended < startTicks*uint64(procid.Tick)
}
