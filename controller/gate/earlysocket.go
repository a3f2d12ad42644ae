// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/unixmsg"
)

// earlySocket is where processes leave their memory. Go's poller does not know it:
// each of them would wake one of its threads, and nobody waits for them.
type earlySocket struct {
	fd   int
	path string // to be removed; "": by who made the socket

	mu     sync.Mutex // guards what follows; a leaf lock
	ended  int        // an eventfd
	closed bool
}

// backlog is how many processes may have come between two looks; the kernel takes
// less if net.core.somaxconn is less, and DMLib tries again.
const backlog = 4096

// newEarlySocket makes it of the socket that is there, or makes one; nil where the
// path is too long for one.
func newEarlySocket(o Options) (*earlySocket, error) {
	if o.Early == nil && len(o.Path)+len(EarlySocket) > maxPath {
		return nil, nil
	}
	ended, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("socket for early processes: %w", err)
	}
	s := &earlySocket{fd: -1, ended: ended}
	if o.Early != nil {
		err = s.adopt(o.Early)
	} else {
		err = s.listen(o.Path+EarlySocket, o.Mode)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("socket for early processes: %w", err)
	}
	return s, nil
}

// adopt takes over a socket, which it closes.
func (s *earlySocket) adopt(socket *os.File) error {
	fd, err := unix.FcntlInt(socket.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		s.fd, err = fd, unix.SetNonblock(fd, true)
	}
	return errors.Join(err, socket.Close())
}

func (s *earlySocket) listen(path string, mode fs.FileMode) (err error) {
	if s.fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		return err
	}
	if err := unix.Bind(s.fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return err
	}
	s.path = path
	if err := os.Chmod(path, cmp.Or(mode, privateSocket)); err != nil {
		return err
	}
	return unix.Listen(s.fd, backlog)
}

// accept returns the next connection; unix.EAGAIN: there is none.
func (s *earlySocket) accept() (int, error) {
	for {
		fd, _, err := unix.Accept4(s.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ECONNABORTED) {
			return fd, err
		}
	}
}

// wait waits for a connection or the end.
func (s *earlySocket) wait() error {
	both := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}, {Fd: int32(s.ended), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(both, -1); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// end ends wait, now and later.
func (s *earlySocket) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		_, _ = unix.Write(s.ended, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // fails only where it was written to
	}
}

// close is called when nobody uses it any more.
func (s *earlySocket) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	if s.path != "" {
		_ = os.Remove(s.path) // or it is gone with its folder
	}
	_ = unix.Close(s.ended)
	if s.fd >= 0 {
		_ = unixmsg.CloseNumber(s.fd)
	}
}
