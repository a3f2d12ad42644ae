// SPDX-License-Identifier: Apache-2.0

package track

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// monotonic is the clock of the kernel's events, in nanoseconds.
func monotonic() uint64 {
	var now unix.Timespec
	// It cannot fail for this clock.
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return uint64(now.Nano())
}

// unixNano is the time of day at a time of the monotonic clock; now for 0.
func unixNano(at uint64) int64 {
	now := time.Now().UnixNano()
	if at == 0 {
		return now
	}
	return now - int64(monotonic()-at)
}

// beforeStart says whether a time of the monotonic clock, in nanoseconds, lies
// before the start of a process. Start times count from boot, suspended time
// included, which the monotonic clock leaves out.
func beforeStart(at, startTicks uint64) bool {
	var boot, mono unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &mono)
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot)
	suspended := uint64(max(boot.Nano()-mono.Nano(), 0))
	return at+suspended < startTicks*(1e9/procid.TicksPerSecond)
}
