// SPDX-License-Identifier: Apache-2.0

// Package pending looks at sockets whatever their deadline. On a busy node that may
// have passed before a read or an accept was called, which then do not look, though
// what is waited for came in time. It has no state.
package pending

import (
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Input says whether a socket has something to read or to accept, or its other end
// has hung up. It asks the kernel, and does not wait.
func Input(socket syscall.Conn) bool {
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	ready, polling := 0, error(unix.EINTR)
	err = raw.Control(func(fd uintptr) {
		who := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for errors.Is(polling, unix.EINTR) {
			ready, polling = unix.Poll(who, 0)
		}
	})
	return errors.Join(err, polling) == nil && ready > 0
}

// Late says whether a read failed only because it came too late to look: there is
// something to read. The connection has no deadline for reading then, and reading
// again does not wait.
func Late(conn *net.UnixConn, err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) && Input(conn) && conn.SetReadDeadline(time.Time{}) == nil
}
