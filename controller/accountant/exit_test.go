// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
)

// TestRealTimeSignal: signals without a name have a number, in the command's end and in the tree's.
func TestRealTimeSignal(t *testing.T) {
	record, _ := mustRun(t, Options{WithoutKernel: true, NoGroup: true}, "sh", "-c", "kill -34 $$")
	for _, exit := range []account.Exit{record.Exit, *exitOf(unix.WaitStatus(34))} {
		if exit.Type != account.ExitSignal || exit.Signal != "signal 34" {
			t.Errorf("ended as %+v, want by signal 34", exit)
		}
	}
}
