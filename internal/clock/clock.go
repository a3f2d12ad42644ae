// SPDX-License-Identifier: Apache-2.0

// Package clock reads clocks of the kernel that package time does not give, none of which
// can be set, and judges the processor's time-stamp counter. Its functions may be called
// from any goroutine.
package clock

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot is the time since the machine was booted, suspended time included, from which
// the kernel counts the starts of processes.
func SinceBoot() time.Duration { return read(unix.CLOCK_BOOTTIME) }

// Monotonic is SinceBoot without suspended time: the clock of the kernel's events and of
// package time, which hides the number.
func Monotonic() time.Duration { return read(unix.CLOCK_MONOTONIC) }

// UnixOffset is what to add to a time of Monotonic for the time since 1970. It is as exact as the
// best of some readings of both clocks: a thread may have to wait for a CPU in between.
func UnixOffset() (offset time.Duration) {
	const (
		together = 20 * time.Microsecond // good enough
		tries    = 10
	)
	best := time.Duration(math.MaxInt64)
	for n := 0; n < tries && best > together; n++ {
		before := Monotonic()
		now := time.Duration(time.Now().UnixNano())
		if passed := Monotonic() - before; passed < best {
			best, offset = passed, now-before-passed/2
		}
	}
	return offset
}

// Thread is the CPU time of the calling thread: a goroutine that compares two locks its
// thread.
func Thread() time.Duration { return read(unix.CLOCK_THREAD_CPUTIME_ID) }

// Process is the CPU time of this process so far, of all its threads.
func Process() time.Duration { return read(unix.CLOCK_PROCESS_CPUTIME_ID) }

func read(id int32) time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(id, &now); err != nil {
		panic(fmt.Sprintf("read clock %d: %v", id, err)) // no Linux lacks it
	}
	return time.Duration(now.Nano())
}
