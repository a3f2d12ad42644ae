// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestExecIntoAmbush: threads are being taken hold of while the program executes
// itself. The kernel lets execve(2) wait until the end of each has been taken,
// and the tracer, who would have to, wait for execve(2).
func TestExecIntoAmbush(t *testing.T) {
	target := targets.StartProgram(t, "becomes")
	for i := range targets.Fewer(40) {
		found, err := objfile.Resolve(target.PID, "becomes", "target_never", objfile.Function)
		if err != nil {
			t.Fatal(err)
		}
		process := mustOpen(t, target.PID)
		done := make(chan error, 1)
		go func() {
			_, _, err := Execute(t.Context(), process, constant(1), ExecuteOptions{At: found.Address, Patience: 100 * time.Millisecond})
			done <- err
		}()
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		if err := target.Say("exec"); err != nil {
			t.Fatal(err)
		}
		target.Expect(t, "ready")
		unmapped := func(err error) bool { return debugRegistersDead() && errors.Is(err, ErrUnsuited) } // it had already
		if err := <-done; !unmapped(err) && !errors.Is(err, ErrNoSafePoint) && !errors.Is(err, ErrInterrupted) && !errors.Is(err, procid.ErrGone) {
			t.Errorf("round %d: %v", i, err)
		}
		target.Right(t)
	}
	target.Finish(t)
}
