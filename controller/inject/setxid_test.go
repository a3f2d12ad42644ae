// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package inject

import (
	"errors"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestThreadThatChangesIDs: a thread that waits for the others to change their user
// ids holds a lock by which threads are started. It is not borrowed meanwhile.
func TestThreadThatChangesIDs(t *testing.T) {
	b := newBench(t)
	b.options.patience = 500 * time.Millisecond
	target := targets.StartProgram(t, "setxid")
	changing := callers(t, target)[0]
	b.options.among = func(tid int) bool { return tid == changing }
	for range targets.Fewer(5) {
		result, err := Inject(t.Context(), mustOpen(t, target.PID), b.options)
		switch {
		case errors.Is(err, ErrNoSafePoint):
		case err != nil:
			t.Fatal(err)
		default:
			GiveBack(t.Context(), result.Memory, nil)
			free(t, result)
		}
		target.Right(t)
	}
	target.Finish(t)
}
