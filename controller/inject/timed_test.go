// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// A timed system call that the only thread is taken out of goes on: nobody sent
// a signal that the program could see.
func TestTimedCallsGoOn(t *testing.T) {
	for call, number := range map[string]int64{"poll": unix.SYS_POLL, "nanosleep": unix.SYS_CLOCK_NANOSLEEP} {
		t.Run(call, func(t *testing.T) {
			b := newBench(t)
			target := targets.StartProgram(t, "timed", call)
			waitCall(t, target.PID, number)
			defer free(t, b.inject(t, target.PID))
			for range 5 {
				waitCall(t, target.PID, number)
				if _, _, err := Execute(t.Context(), mustOpen(t, target.PID), ownThread(), patiently(ExecuteOptions{Anywhere: true})); err != nil {
					t.Fatal(err)
				}
			}
			if got := target.Ask(t, "check"); got != "0 failed" {
				t.Error(got)
			}
			target.EndWell(t)
		})
	}
}
