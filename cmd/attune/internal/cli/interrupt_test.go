// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/signal"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A signal on the heels of the first does not end the process, which this one is.
func TestEndAtNext(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, stop := signal.NotifyContext(t.Context(), unix.SIGTERM)
	defer stop()
	send := func() { // to this thread, which has it when the call returns; else it may come after stop
		t.Helper()
		if err := unix.Tgkill(os.Getpid(), unix.Gettid(), unix.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	send()
	<-ctx.Done()
	EndAtNext(stop)
	send()
}
