// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// threadEndPatience bounds the wait for an OS thread that is ending.
	threadEndPatience = 100 * time.Millisecond
	threadEndPause    = 50 * time.Microsecond
)

// onOwnThread calls f in an OS thread that ends afterwards, and returns when it
// has: the kernel then lets go of whatever f still traces.
func onOwnThread(f func()) {
	done := make(chan int)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// Go keeps the first thread for ever. Held here, it is not the next one.
			defer runtime.UnlockOSThread()
			onOwnThread(f)
			done <- 0
			return
		}
		f()
		done <- unix.Gettid()
	}()
	tid := <-done
	if tid == 0 {
		return
	}
	for until := time.Now().Add(threadEndPatience); time.Now().Before(until); time.Sleep(threadEndPause) {
		if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", tid)); err != nil {
			return
		}
	}
}

// hurry lets this thread run at once when it is woken: a thread of the program
// waits for it. Real-time priority would be worse: the thread needs this CPU to
// get on. What the user may not have is not needed.
func hurry() {
	const slice = 100_000 // nanoseconds; since Linux 6.12
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL {
		return
	}
	attr.Runtime = slice
	ordinary := *attr
	attr.Nice = -20
	if unix.SchedSetAttr(0, attr, 0) != nil {
		_ = unix.SchedSetAttr(0, &ordinary, 0)
	}
}
