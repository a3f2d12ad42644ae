// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"runtime"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestLookAtCalls: a thread that is stopped and let go does what it would have done.
func TestLookAtCalls(t *testing.T) {
	target := targets.StartProgram(t, "timeouts")
	tids, err := procid.Threads(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread() // the tracer; it ends with the goroutine
	for range targets.Fewer(100) {
		for _, tid := range tids[1:] { // each waits in one call
			thread := &Thread{ID: tid}
			if err := thread.seize(0); err != nil {
				t.Fatal(err)
			}
			if err := thread.interrupt(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if err := thread.LetGo(); err != nil {
				t.Fatal(err)
			}
		}
	}
	target.Right(t)
	target.Finish(t)
}
