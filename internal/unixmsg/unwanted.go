// SPDX-License-Identifier: Apache-2.0

package unixmsg

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/briefthread"
	"github.com/attune-hpc/attune/internal/procid"
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

// Text is the connection of a stranger, read as a stream of text: a descriptor in it ends it,
// [ErrUnwanted]. Text never takes a descriptor: it may be of a file whose server is the stranger's,
// who answers neither when this process closes it nor when Go's poller asks what is ready.
// One goroutine reads at a time.
type Text struct {
	*net.UnixConn
	refuses bool // the kernel refuses descriptors
}

// NewText owns the connection, also after an error.
func NewText(conn *net.UnixConn) (*Text, error) {
	t := &Text{UnixConn: conn}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if t.refuses = refuses(int(fd)); !t.refuses {
			// Urgent data (MSG_OOB) is a part of the text: a read would pass over it unseen, and
			// close what has come with it.
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_OOBINLINE, 1)
		}
	})
	if err = errors.Join(err, os.NewSyscallError("setsockopt", failed)); err != nil {
		return nil, errors.Join(err, Close(conn))
	}
	return t, nil
}

// Read reads text, as far as it is without descriptors: they stay in the connection until Close.
func (t *Text) Read(b []byte) (int, error) {
	if t.refuses || len(b) == 0 {
		return t.UnixConn.Read(b)
	}
	n, err := peekText(t.UnixConn, b)
	if err != nil {
		return 0, err
	}
	return t.UnixConn.Read(b[:max(n, 1)]) // no more than was looked at; the end is read again
}

// Close closes the connection, whatever it still holds.
func (t *Text) Close() error { return Close(t.UnixConn) }

// peekText waits for something to read, and returns how many bytes a read returns of it at most.
// [ErrUnwanted] if descriptors come with them. Without room for control data the kernel only says
// that there are some.
func peekText(conn *net.UnixConn, b []byte) (n int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var flags int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		failed = unix.EINTR
		for errors.Is(failed, unix.EINTR) {
			n, _, flags, _, failed = unix.Recvmsg(int(fd), b, nil, unix.MSG_PEEK|unix.MSG_DONTWAIT)
		}
		return !errors.Is(failed, unix.EAGAIN)
	})
	switch {
	case err != nil:
		return 0, err
	case failed != nil:
		return 0, os.NewSyscallError("recvmsg", failed)
	case flags&unix.MSG_CTRUNC != 0:
		return 0, ErrUnwanted
	}
	return n, nil
}

// Close closes a connection, whatever it still holds.
func Close(conn *net.UnixConn) error {
	if mayHoldConn(conn) {
		return CloseAll(conn)
	}
	return conn.Close()
}

// refuses says whether the kernel refuses descriptors in a connection.
func refuses(fd int) bool {
	takes, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSRIGHTS)
	return err == nil && takes == 0
}

// mayHoldConn is mayHold of a connection; one that is closed holds nothing.
func mayHoldConn(conn *net.UnixConn) (holds bool) {
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { holds = mayHold(int(fd)) })
	}
	return holds
}

// mayHold says whether there may be descriptors in a connection, to which no more come from
// then on: its peer sees the end. A packet of no bytes may have some, a stream has no such packets.
func mayHold(fd int) bool {
	if refuses(fd) {
		return false
	}
	_ = unix.Shutdown(fd, unix.SHUT_RDWR) // fails where the peer has gone, who sends no more
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM {
		return true
	}
	unread, err := unix.IoctlGetInt(fd, unix.SIOCINQ)
	return err != nil || unread > 0
}

// CloseAll closes connections, listeners or files, whatever they still hold: a listener has
// connections that nobody has accepted.
func CloseAll(all ...io.Closer) error {
	return withoutLinger(func() (err error) {
		for _, one := range all {
			err = errors.Join(err, one.Close())
		}
		return err
	})
}

// CloseNumber is CloseAll of a descriptor by its number.
func CloseNumber(fd int) error { return withoutLinger(func() error { return unix.Close(fd) }) }

// endPatience bounds the wait for the end of a thread that has descriptors, and crowdPatience
// that of one that has to wait for a CPU.
const (
	endPatience   = 100 * time.Millisecond
	crowdPatience = 10 * time.Second
)

// withoutLinger calls a function that closes descriptors while a thread has a table of its own
// with all descriptors of this process. The last close of each happens when that thread ends: at
// an end the kernel waits for no connection (inet_release in net/ipv4/af_inet.c). The thread must
// close none before: it could be the last that has what another one closes just then. Nor can it
// do without any, since Go's scheduler, which runs in it, wakes its poller by them.
//
// Whoever returns finds what else was closed meanwhile closed, locks and pipes as well, unless the
// end of the thread waits for a file whose server does not answer. Without a table of its own,
// which is part of the error, closing waits as ever.
func withoutLinger(closeAll func() error) error {
	begun, closed := make(chan error, 1), make(chan struct{})
	var tid int
	go briefthread.Do(func() {
		tid = unix.Gettid()
		begun <- os.NewSyscallError("close_range", unix.CloseRange(math.MaxUint32, math.MaxUint32, unix.CLOSE_RANGE_UNSHARE))
		<-closed
	})
	err := errors.Join(<-begun, closeAll())
	close(closed)
	awaitEnd(tid)
	return err
}

// awaitEnd waits for a thread of this process that is about to end.
func awaitEnd(tid int) {
	pause := 20 * time.Microsecond
	for begun := time.Now(); unix.Tgkill(os.Getpid(), tid, 0) == nil; time.Sleep(pause) {
		waited := time.Since(begun)
		if waited < endPatience {
			continue
		}
		pause = time.Millisecond // it is not to compete with what it waits for
		if stat, err := procid.ReadThreadStat(os.Getpid(), tid); err != nil || stat.State != 'R' || waited > crowdPatience {
			return
		}
	}
}

// CheckCloseAll says why [CloseAll] has no thread with a table of its own, nil if it has: a filter
// of system calls may refuse it. A service asks once, and tells.
func CheckCloseAll() error {
	if err := CloseAll(); err != nil {
		return fmt.Errorf("descriptors that a user sends can keep closing waiting for good, unless filters of system calls allow close_range: %w", err)
	}
	return nil
}
