// SPDX-License-Identifier: Apache-2.0

// Package briefthread has functions run in threads of their own, which end with them: what such a
// thread gives up or keeps concerns no other one. It has no state.
package briefthread

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Do calls f in a thread of its own, and waits for f. The thread ends with f.
func Do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		if unix.Gettid() == unix.Getpid() {
			// But for the first one, which Go cannot end, and whose rights /proc shows as
			// those of the process. While it is taken, another one is found.
			defer runtime.UnlockOSThread()
			Do(f)
			return
		}
		f()
	}()
	<-done
}
