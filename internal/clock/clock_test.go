// SPDX-License-Identifier: Apache-2.0

package clock_test

import (
	"runtime"
	"testing"

	"github.com/attune-hpc/attune/internal/clock"
)

func TestClocks(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	monotonic, thread := clock.Monotonic(), clock.Thread()
	for clock.Thread() == thread {
	}
	if process := clock.Process(); process < clock.Thread()-thread {
		t.Errorf("%v of the process, %v of its thread", process, clock.Thread()-thread)
	}
	if now := clock.Monotonic(); now <= monotonic || clock.SinceBoot() < now || clock.Thread() > now {
		t.Errorf("monotonic %v after %v, since boot %v, of the thread %v after %v", now, monotonic, clock.SinceBoot(), clock.Thread(), thread)
	}
}
