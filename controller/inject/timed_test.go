// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package inject

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/targets"
)

// A timed system call that the only thread is taken out of goes on: nobody sent
// a signal that the program could see.
func TestTimedCallsGoOn(t *testing.T) {
	for _, call := range []string{"poll", "nanosleep"} {
		t.Run(call, func(t *testing.T) {
			b := newBench(t)
			target := targets.StartProgram(t, "timed", call)
			time.Sleep(20 * time.Millisecond) // it is in its call
			defer free(t, b.inject(t, target.PID))
			for range 5 {
				time.Sleep(20 * time.Millisecond)
				if _, _, err := Execute(t.Context(), mustOpen(t, target.PID), ownThread(), ExecuteOptions{Anywhere: true}); err != nil {
					t.Fatal(err)
				}
			}
			if got := target.Ask(t, "check"); got != "0 failed" {
				t.Error(got)
			}
			if err := target.End(t); err != nil {
				t.Error(err)
			}
		})
	}
}
