// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// OutlivePipes has a write to a pipe whose reader has gone fail, where it would end this process:
// what the process has changed would stay. Nobody reads the signal, for sockets raise it too.
func OutlivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
