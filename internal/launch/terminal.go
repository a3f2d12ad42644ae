// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Foreground tells whether this process's group owns the controlling terminal;
// false where there is none. It is safe for concurrent use.
func Foreground() bool {
	tty, err := unix.Open("/dev/tty", unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(tty)
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// fromTerminal tells whether the terminal may send the signal to its whole
// foreground group.
func fromTerminal(sig syscall.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGTSTP,
		syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGWINCH, syscall.SIGCONT:
		return true
	}
	return false
}
