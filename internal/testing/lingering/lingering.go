// SPDX-License-Identifier: Apache-2.0

// Package lingering has sockets whose last close waits for good, as an attacker sends them to a
// service: of TCP, with SO_LINGER and unsent data, connected to somebody who does not read. It has no
// state.
package lingering

import (
	"errors"
	"math"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// Send sends such a socket with text on a connection and keeps no copy. The end of the test ends the
// wait of whoever has closed it. The error is the kernel's, which may refuse descriptors.
func Send(t testing.TB, conn *net.UnixConn, text string) error {
	t.Helper()
	return send(t, conn, text, 0)
}

// SendUrgent is Send of urgent data (MSG_OOB), for streams; a kernel may have none on Unix sockets.
func SendUrgent(t testing.TB, conn *net.UnixConn, text string) error {
	t.Helper()
	return send(t, conn, text, unix.MSG_OOB)
}

func send(t testing.TB, conn *net.UnixConn, text string, flags int) error {
	t.Helper()
	fd := open(t)
	defer func() { _ = unix.Close(fd) }() // if it was sent there is another one
	raw, err := conn.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var sent error
	err = raw.Control(func(to uintptr) { sent = unix.Sendmsg(int(to), []byte(text), unix.UnixRights(fd), nil, flags) })
	if err = errors.Join(err, sent); err != nil { // this thread must not wait
		err = errors.Join(err, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{}))
	}
	return err
}

// open returns one.
func open(t testing.TB) (fd int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = unix.Connect(fd, &unix.SockaddrInet4{Port: listener.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	silent, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = unix.Write(fd, make([]byte, 1<<16))
	}
	if !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	linger := unix.Linger{Onoff: 1, Linger: math.MaxInt32}
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &linger); err != nil {
		t.Fatal(err)
	}
	return fd
}
