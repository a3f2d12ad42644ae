// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
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

// errHeld says that an OS thread must end before another one goes on.
var errHeld = errors.New("a thread of the process is still held")

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
