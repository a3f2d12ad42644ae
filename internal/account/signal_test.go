// SPDX-License-Identifier: Apache-2.0

package account

import (
	"syscall"
	"testing"
)

func TestSignalName(t *testing.T) {
	for sig, want := range map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", 40: "signal 40"} {
		if got := SignalName(sig); got != want {
			t.Errorf("%d is %q, want %q", sig, got, want)
		}
	}
}
