// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// A signal on the heels of the first does not end the process, which this one is.
func TestEndAtNext(t *testing.T) {
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	send := func() {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	send()
	<-ctx.Done()
	EndAtNext(stop)
	send()
}
