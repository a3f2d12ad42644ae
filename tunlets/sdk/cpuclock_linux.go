// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock measures the CPU time of a goroutine, which keeps its thread meanwhile.
// What the goroutine has others do is not measured.
type cpuClock struct{ began unix.Timespec }

func startCPUClock() cpuClock {
	runtime.LockOSThread()
	var c cpuClock
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &c.began) // it is always there
	return c
}

// stop returns the CPU time since the start, and lets go of the thread.
func (c cpuClock) stop() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
	runtime.UnlockOSThread()
	return time.Duration(now.Nano() - c.began.Nano())
}
