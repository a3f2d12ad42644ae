// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/proto/attune/series"
)

const (
	// LookEvery is how often a TCP socket is borrowed: only so its options can be
	// read, which seldom change.
	LookEvery = 5 * time.Second
	// LookForeign is how often a socket is that the kernel cannot be asked after:
	// of another network namespace, without address, or of any where it may not be asked.
	LookForeign = 250 * time.Millisecond
)

// socket is what is known of one.
type socket struct {
	kind string    // empty: of no kind that is told of
	due  time.Time // when it is to be borrowed; zero: at once
	// detail is as it was read last; nil: never. It is copied when it is told.
	detail  *series.Socket
	id      tcpID // of a TCP socket, by which the kernel is asked
	unfound bool  // it was, and did not find it
}

// readSockets reads the sockets that are next in turn, at most so many.
func (r *Reader) readSockets(p *process, most int, to *series.Details) (used int) {
	if !p.table.complete {
		return 0
	}
	out := &series.Rows[series.Socket]{Total: p.table.sockets.total}
	var trouble trouble
	for _, e := range p.sockets.next(p.table.sockets.settled, most) {
		item, err := r.readSocket(p, e)
		if trouble.add(err); err == nil && item != nil {
			out.Items = append(out.Items, *item)
		}
	}
	out.Error = trouble.text()
	to.Sockets = out
	return len(out.Items)
}

// readSocket reads one. It returns nil for one that is of no kind that is told
// of, or not due.
func (r *Reader) readSocket(p *process, e *entry) (*series.Socket, error) {
	if e.socket == nil {
		kind, err := p.socketKind(e)
		if err != nil {
			return nil, err
		}
		e.socket = &socket{kind: kind}
	}
	s := e.socket
	if s.kind == "" {
		return nil, nil
	}
	if err := r.refresh(p, e); err != nil {
		return nil, err
	}
	copied := *s.detail
	if copied.TCP != nil { // which the kernel's next answer is written into
		tcp := *copied.TCP
		copied.TCP = &tcp
	}
	return &copied, nil
}

// refresh brings what is known of a socket up to date, in the way that disturbs
// the process least. [errClosed] too if nothing new can be known yet.
func (r *Reader) refresh(p *process, e *entry) error {
	s, now := e.socket, r.now()
	if s.asked(p, now) {
		err := r.ask(e)
		if !errors.Is(err, errClosed) {
			return err
		}
		// Closed by now; or one of several that listen at an address, of which
		// the kernel finds one; or it has no module to look for it, or may not be asked.
		s.unfound, s.due = true, now
	}
	if s.detail != nil && now.Before(s.due) {
		return errClosed
	}
	s.detail = newSocketDetail(e)
	if err := p.borrow(e, func(fd int) error { return look(fd, s) }); err != nil {
		s.detail = nil
		return err
	}
	s.due = now.Add(LookEvery)
	if !s.asked(p, now) {
		s.due = now.Add(LookForeign)
	}
	return nil
}

// asked says whether the kernel is to be asked after the socket. It is not where
// it cannot find it, and not when what only a look tells is due.
func (s *socket) asked(p *process, now time.Time) bool {
	switch {
	case !p.ownNet || s.unfound:
		return false
	case s.kind == kindUnix:
		return true
	}
	if s.detail == nil || s.detail.TCP == nil {
		return false
	}
	return s.detail.TCP.State != "closed" && now.Before(s.due) // a closed one has no addresses
}

// ask asks the kernel after a socket.
func (r *Reader) ask(e *entry) error {
	s := e.socket
	if s.kind == kindUnix {
		s.detail = newSocketDetail(e)
		return r.diag.unix(e.inode, s.detail)
	}
	return r.diag.tcp(s.id, s.detail)
}

func newSocketDetail(e *entry) *series.Socket {
	return &series.Socket{FD: e.fd, Inode: e.inode, Kind: e.socket.kind}
}

// The kinds of sockets that are told of.
const (
	kindTCP  = "tcp"
	kindUnix = "unix"
)

// protocols are the names that the kernel gives to what is told of, as xattr
// system.sockprotoname.
var protocols = map[string]string{"TCP": kindTCP, "TCPv6": kindTCP, "UNIX": kindUnix, "UNIX-STREAM": kindUnix}

// socketKind asks which kind of socket a descriptor is of, without borrowing it.
func (p *process) socketKind(e *entry) (string, error) {
	var name [32]byte
	path := fmt.Sprintf("%s/%d", p.table.path, e.fd)
	n, err := unix.Getxattr(path, "system.sockprotoname", name[:])
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODATA), errors.Is(err, unix.EOPNOTSUPP):
		return "", errClosed // or another file by now
	case err != nil:
		return "", fmt.Errorf("descriptor %d: protocol: %w", e.fd, err)
	}
	return protocols[string(bytes.TrimRight(name[:n], "\x00"))], nil
}

// look reads all that options tell of a socket, through a descriptor of ours.
func look(fd int, s *socket) error {
	d := s.detail
	memory, err := readMemoryWords(fd)
	if err != nil {
		return err
	}
	memory.into(d)
	local, _ := unix.Getsockname(fd) // of a socket that has none both fail
	peer, _ := unix.Getpeername(fd)
	d.Local, d.Peer = addressText(local), addressText(peer)
	if s.kind != kindTCP {
		return nil
	}
	return lookTCP(fd, s, local, peer)
}

// lookTCP is look for what only TCP has, or only TCP is always looked at for.
func lookTCP(fd int, s *socket, local, peer unix.Sockaddr) error {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return fmt.Errorf("TCP_INFO: %w", err)
	}
	if lock, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK); err == nil { // Linux 5.14
		s.detail.SendBufferSet, s.detail.ReceiveBufferSet = lock&1 != 0, lock&2 != 0
	}
	tcp := &series.TCP{}
	tcpInto(info, tcp)
	if noDelay, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY); err == nil {
		tcp.NoDelay = noDelay != 0
	}
	if name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); err == nil {
		tcp.Congestion = name
	}
	cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err != nil {
		return fmt.Errorf("SO_COOKIE: %w", err)
	}
	s.detail.TCP, s.id = tcp, newTCPID(local, peer, cookie)
	return nil
}
