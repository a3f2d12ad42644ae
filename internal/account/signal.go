// SPDX-License-Identifier: Apache-2.0

package account

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// SignalName returns a signal's name, e.g. SIGTERM; real-time signals have a
// number.
func SignalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}
