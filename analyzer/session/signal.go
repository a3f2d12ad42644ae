// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalName returns a signal's name, e.g. SIGTERM.
func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}
