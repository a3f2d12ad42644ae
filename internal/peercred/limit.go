// SPDX-License-Identifier: Apache-2.0

package peercred

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/quota"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

const (
	// PerUser is how many connections one user gets of a service that everybody may
	// connect to, unless there is a reason for another number: a login node has many
	// commands running at a time, and a service 1024 descriptors at the least.
	PerUser = 64
	// connectBurst and connectEvery bound how often a user connects: what a service does
	// with a new connection takes a hundred times as long as to close it.
	connectBurst = 256
	connectEvery = 50 * time.Millisecond
)

// Limit bounds how many connections one user may have open at a listener, so that nobody
// takes the descriptors which root's need, and how often they connect: what is beyond is
// closed at once. Root and the process' own user are not bounded. The connections are
// syscall.Conn, for [Of], and streams of text: descriptors that a peer sends end them.
func Limit(listener *net.UnixListener, perUser int) (net.Listener, error) {
	socket, err := listener.File()
	if err != nil {
		return nil, err
	}
	return &limited{
		UnixListener: listener, socket: socket,
		open: quota.NewAtOnce[uint32](perUser), made: quota.NewRate[uint32](connectBurst, connectEvery),
	}, nil
}

type limited struct {
	*net.UnixListener
	socket *os.File              // the same one, which tells its descriptor
	open   *quota.AtOnce[uint32] // connections by user
	made   *quota.Rate[uint32]
	closed atomic.Bool
}

// Close makes Accept return [net.ErrClosed], and removes the socket.
func (l *limited) Close() error {
	l.closed.Store(true)
	return unixmsg.CloseAll(l.UnixListener, l.socket)
}

// Accept returns the next connection that is not beyond the limit.
func (l *limited) Accept() (net.Conn, error) {
	var conn net.Conn
	var failed error
	raw, err := l.socket.SyscallConn()
	if err == nil {
		err = raw.Read(func(fd uintptr) bool {
			conn, failed = l.take(int(fd))
			return !errors.Is(failed, unix.EAGAIN)
		})
	}
	switch {
	case err == nil:
		return conn, failed
	case l.closed.Load():
		return nil, net.ErrClosed
	}
	return nil, err
}

// take accepts connections until one is let in. The others are known to nobody but the
// kernel: a flood of them costs a few system calls each, and a thread now and then.
func (l *limited) take(listener int) (net.Conn, error) {
	var refused unixmsg.Refused
	defer func() { _ = refused.Close() }() // nothing was read yet
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		switch {
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
			continue
		case err != nil: // of the type by which servers know that it may get better
			return nil, &net.OpError{Op: "accept", Net: "unix", Addr: l.Addr(), Err: os.NewSyscallError("accept", err)}
		}
		if leave, ok := l.letIn(fd); ok {
			conn, err := connOf(fd)
			if err != nil {
				leave()
				return nil, err
			}
			return &counted{Text: conn, leave: leave}, nil
		}
		refused.AddDescriptor(fd)
	}
}

// connOf makes a connection of a descriptor, which is its own from then on.
func connOf(fd int) (*unixmsg.Text, error) {
	file := os.NewFile(uintptr(fd), "connection")
	conn, err := net.FileConn(file)
	if err != nil {
		_ = unixmsg.CloseAll(file) // err is of a type that servers know
		return nil, err
	}
	defer file.Close() // net has another one
	socket, is := conn.(*net.UnixConn)
	if !is {
		return nil, errors.Join(fmt.Errorf("%T is no connection of a Unix socket", conn), conn.Close())
	}
	return unixmsg.NewText(socket)
}

// letIn asks whose a connection is, and counts it until leave is called.
func (l *limited) letIn(fd int) (leave func(), ok bool) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, false
	}
	return l.enter(peer.Uid)
}

func (l *limited) enter(uid uint32) (leave func(), ok bool) {
	if uid == 0 || int(uid) == os.Geteuid() {
		return func() {}, true
	}
	if !l.open.Enter(uid) {
		return nil, false
	}
	leave = sync.OnceFunc(func() { l.open.Leave(uid) })
	if !l.made.Take(uid) {
		leave()
		return nil, false
	}
	return leave, true
}

// counted is a connection that counts until it is closed.
type counted struct {
	*unixmsg.Text
	leave func()
}

// Close closes the connection, whatever it still holds.
func (c *counted) Close() error {
	defer c.leave() // who keeps closing busy holds a place of their own
	return c.Text.Close()
}
