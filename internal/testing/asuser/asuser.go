// SPDX-License-Identifier: Apache-2.0

// Package asuser connects to Unix sockets as other users, in tests that run as root.
// It has no state; everything may be used from any goroutine.
package asuser

import (
	"fmt"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// Dial connects as a user: the kernel tells the other end the user of the thread that
// connects. That thread ends with its goroutine and is nobody else's.
func Dial(uid uint32, path string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		runtime.LockOSThread() // for good
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if errno != 0 {
			done <- result{nil, fmt.Errorf("become user %d: %w", uid, errno)}
			return
		}
		conn, err := net.Dial("unix", path)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}
