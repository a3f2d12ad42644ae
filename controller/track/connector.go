// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/pending"
)

// ErrNoConnector says that the kernel's process connector cannot be used: it
// is not built in, needs privileges (before Linux 6.6), or tells nothing in
// this pid namespace (containers).
var ErrNoConnector = errors.New("process connector is not available")

// connector is the kernel's process connector (netlink): fork, exec and exit
// of every process of the machine, so that the tracker has to choose.
type connector struct {
	file *os.File
	raw  syscall.RawConn
	lost atomic.Uint64
}

const (
	netlinkConnector = 11 // NETLINK_CONNECTOR
	listen, ignore   = 1, 2

	// connectorBuffer holds some ten thousand events. Without privileges the
	// kernel grants less (net.core.rmem_max).
	connectorBuffer = 4 << 20
	// restEvents bounds what is read after the end: other processes go on.
	restEvents = 16384
)

// NewConnector subscribes to the process connector, with [ErrNoConnector]
// where that is not possible. The caller closes it.
func NewConnector() (Source, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, netlinkConnector)
	if err != nil {
		return nil, fmt.Errorf("%w: socket: %w", ErrNoConnector, err)
	}
	c := &connector{file: os.NewFile(uintptr(fd), "process connector")}
	if err := c.subscribe(fd); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNoConnector, err), c.file.Close())
	}
	return c, nil
}

func (c *connector) subscribe(fd int) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, connectorBuffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, connectorBuffer); err != nil {
			return fmt.Errorf("receive buffer: %w", err)
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: connectorGroup}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	var err error
	if c.raw, err = c.file.SyscallConn(); err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	// The kernel numbers its messages itself and answers "ack" with one more.
	ack := uint32(os.Getpid())
	if err := unix.Sendto(fd, connectorRequest(listen, ack), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	return c.answer(ack + 1)
}

// answer looks for the kernel's confirmation of the subscription, which has come
// within the system call that asked for it. Outside of the initial pid namespace
// the kernel drops the request without a word.
func (c *connector) answer(ack uint32) error {
	buffer := make([]byte, os.Getpagesize())
	for {
		if !pending.Input(c.file) {
			return errors.New("no answer")
		}
		n, err := c.receive(buffer)
		if err != nil {
			return fmt.Errorf("receive the answer: %w", err)
		}
		m, err := parseConnector(buffer[:n])
		if err != nil || m.what != connectorNone || m.ack != ack {
			continue
		}
		if m.status != 0 {
			return fmt.Errorf("refused: %w", syscall.Errno(m.status))
		}
		return nil
	}
}

// receive waits for one datagram from the kernel.
func (c *connector) receive(buffer []byte) (n int, err error) {
	var from unix.Sockaddr
	waitErr := c.raw.Read(func(fd uintptr) bool {
		n, from, err = unix.Recvfrom(int(fd), buffer, 0)
		return !errors.Is(err, unix.EAGAIN)
	})
	if waitErr != nil {
		return 0, waitErr
	}
	if sender, ok := from.(*unix.SockaddrNetlink); err == nil && (!ok || sender.Pid != 0) {
		return 0, nil // not from the kernel: nothing to parse
	}
	return n, err
}

// Add implements Source; the connector tells of everything anyway.
func (c *connector) Add(int) error { return nil }

// Remove implements Source.
func (c *connector) Remove(int) error { return nil }

// Lost implements Source. The kernel does not say how many events a full
// buffer cost, so each occasion counts as one.
func (c *connector) Lost() uint64 { return c.lost.Load() }

// Run implements Source.
func (c *connector) Run(ctx context.Context, handle func(Event)) error {
	stop := context.AfterFunc(ctx, func() {
		// It fails only after Close, which ends the loop as well.
		_ = c.file.SetReadDeadline(time.Unix(1, 0))
	})
	defer stop()
	buffer := make([]byte, os.Getpagesize())
	for ctx.Err() == nil {
		n, err := c.receive(buffer)
		switch {
		case errors.Is(err, unix.ENOBUFS):
			c.lost.Add(1)
			continue
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, os.ErrClosed):
			return nil
		case ctx.Err() != nil:
			return c.rest(buffer, handle)
		case err != nil:
			return fmt.Errorf("receive process events: %w", err)
		}
		deliver(buffer[:n], handle)
	}
	return c.rest(buffer, handle)
}

// deliver hands over the event in a message, if it is one: the connector has
// other users, and newer kernels have other events.
func deliver(message []byte, handle func(Event)) {
	m, err := parseConnector(message)
	if err != nil {
		return
	}
	if event, ok := m.event(); ok {
		handle(event)
	}
}

// rest hands over what the kernel has sent already.
func (c *connector) rest(buffer []byte, handle func(Event)) error {
	return c.raw.Control(func(fd uintptr) {
		for range restEvents {
			n, from, err := unix.Recvfrom(int(fd), buffer, unix.MSG_DONTWAIT)
			if err != nil {
				return // EAGAIN, or lost: the end is told by others
			}
			if sender, ok := from.(*unix.SockaddrNetlink); ok && sender.Pid == 0 {
				deliver(buffer[:n], handle)
			}
		}
	})
}

// Close implements Source. Linux before 6.6 counts listeners by what they say,
// so it is told.
func (c *connector) Close() error {
	_ = c.raw.Control(func(fd uintptr) {
		_ = unix.Sendto(int(fd), connectorRequest(ignore, 0), unix.MSG_DONTWAIT, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	})
	return c.file.Close()
}
