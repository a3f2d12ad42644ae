// SPDX-License-Identifier: Apache-2.0

package unixmsg

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/briefthread"
)

// What follows is for connections whose peers are strangers. A descriptor in a message may be
// the last one of a TCP connection with SO_LINGER, whose other end does not read: whoever closes
// it waits for good, and whoever reads past the message, or closes the connection with the
// message in it, closes the descriptor.

// ErrUnwanted says that a peer has sent descriptors that nobody asked for.
var ErrUnwanted = errors.New("the peer has sent descriptors, which nobody asked for")

// RefuseFiles is a [net.ListenConfig.Control] that has the kernel refuse descriptors at the
// connections of a listener, as Linux 6.16 can; on others they come.
func RefuseFiles(_, _ string, listener syscall.RawConn) error {
	var failed error
	err := listener.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSRIGHTS, 0)
	})
	if errors.Is(failed, unix.ENOPROTOOPT) {
		failed = nil
	}
	return errors.Join(err, os.NewSyscallError("setsockopt", failed))
}

// maxFiles is how many descriptors come with one message (SCM_MAX_FD).
const maxFiles = 253

// ReadText is a Read of a stream that has no descriptors, [ErrUnwanted]: they are closed, and
// what has come with them is lost.
func ReadText(conn *net.UnixConn, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil // a message would lose its first byte
	}
	control := make([]byte, unix.CmsgSpace(maxFiles*descriptorSize))
	n, controls, _, _, err := conn.ReadMsgUnix(b, control)
	n = max(n, 0) // below with an error
	if controls > 0 {
		files, err := parse(control[:controls])
		return 0, errors.Join(ErrUnwanted, err, WithoutLinger(func() (err error) {
			for _, file := range files {
				err = errors.Join(err, file.Close())
			}
			return err
		}))
	}
	if errors.Is(err, io.EOF) {
		err = io.EOF // as a Read says it
	}
	return n, err
}

// Close closes a connection, whatever it still holds.
func Close(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	holds := false
	if err := raw.Control(func(fd uintptr) { holds = mayHold(int(fd)) }); err != nil {
		return err // it is closed
	}
	if holds {
		return WithoutLinger(conn.Close)
	}
	return conn.Close()
}

// CloseDescriptor is Close for the descriptor of a connection.
func CloseDescriptor(fd int) error {
	if mayHold(fd) {
		return WithoutLinger(func() error { return unix.Close(fd) })
	}
	return unix.Close(fd)
}

// mayHold says whether there may be descriptors in a connection, to which no more come from
// then on. A packet of no bytes may have some, a stream has no such packets.
func mayHold(fd int) bool {
	if takes, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS); err == nil && takes == 0 {
		return false
	}
	_ = unix.Shutdown(fd, unix.SHUT_RD) // fails where the peer has gone, who sends no more
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM {
		return true
	}
	unread, err := unix.IoctlGetInt(fd, unix.SIOCINQ)
	return err != nil || unread > 0
}

// WithoutLinger calls a function that closes descriptors, such as a listener with connections
// that nobody has accepted, while a thread has a table of its own with all descriptors of this
// process. The last close of each happens when that thread ends: at an end the kernel waits for
// no connection (inet_release in net/ipv4/af_inet.c). Nothing waits for the thread. Without a
// table of its own, which is part of the error, closing waits as ever.
func WithoutLinger(closeAll func() error) error {
	held, closed := make(chan error, 1), make(chan struct{})
	defer close(closed)
	go briefthread.Do(func() {
		held <- os.NewSyscallError("close_range", unix.CloseRange(math.MaxUint32, math.MaxUint32, unix.CLOSE_RANGE_UNSHARE))
		<-closed
	})
	return errors.Join(<-held, closeAll())
}
