// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

func TestClocks(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	monotonic, thread := clock.Monotonic(), clock.Thread()
	for clock.Thread() == thread {
	}
	if now := clock.Monotonic(); now <= monotonic || clock.SinceBoot() < now || clock.Thread() > now {
		t.Errorf("monotonic %v after %v, since boot %v, of the thread %v after %v", now, monotonic, clock.SinceBoot(), clock.Thread(), thread)
	}
}

// TestProcess: what one thread takes is of the process, and not of another thread.
func TestProcess(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, thread := clock.Process(), clock.Thread()
	taken := make(chan time.Duration)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		first := clock.Thread()
		for clock.Thread()-first < 20*time.Millisecond {
		}
		taken <- clock.Thread() - first
	}()
	other := <-taken
	if own := clock.Thread() - thread; own >= other {
		t.Errorf("%v of this thread, %v of another", own, other)
	}
	// Of a thread that runs yet, others know what it took until its last tick.
	patience.Until(t, "what another thread took in what the process did", func() bool { return clock.Process()-process >= other })
}
