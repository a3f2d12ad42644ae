// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/passing"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// diag asks the kernel after one socket at a time; see sock_diag(7). A library
// that does so (vishvananda/netlink) only lists all sockets of the machine.
type diag struct {
	fd        int // -1: not open
	sequence  uint32
	buffer    [8192]byte
	tcpFinds  finds
	unixFinds finds
}

// finds is what the kernel has found so far of one kind.
type finds struct {
	any    bool
	misses int
}

// maxMisses is after how many sockets that the kernel has not found, and none
// that it has, it is not asked any more: it answers so where it has no such
// module (tcp_diag, unix_diag), after having looked for it with a program. So it is not
// where it may not be asked.
const maxMisses = 8

// use asks, unless that is of no use.
func (f *finds) use(ask func() error) error {
	if !f.any && f.misses >= maxMisses {
		return errClosed
	}
	err := ask()
	switch {
	case err == nil:
		f.any = true
	case errors.Is(err, errClosed):
		f.misses++
	}
	return err
}

// tcpID names a TCP socket: struct inet_diag_sockid of linux/inet_diag.h, and
// its address family. The cookie is the kernel's own, never used again.
type tcpID struct {
	family    uint8
	ports     [2]uint16 // own and the peer's
	addresses [2][16]byte
	cookie    uint64
	zone      uint32 // interface of an address that is valid on one link only
}

// Attributes of the answers; see linux/inet_diag.h and linux/unix_diag.h.
const (
	inetDiagInfo    = 2
	inetDiagCong    = 4
	inetDiagMeminfo = 7

	unixDiagName    = 0
	unixDiagPeer    = 2
	unixDiagMeminfo = 5

	unixShowName    = 1 << 0
	unixShowPeer    = 1 << 2
	unixShowMeminfo = 1 << 5

	inetMessageBytes = 72 // struct inet_diag_msg
	unixMessageBytes = 16 // struct unix_diag_msg
	anyState         = 1<<32 - 1
)

func (d *diag) close() error {
	if d.fd < 0 {
		return nil
	}
	fd := d.fd
	d.fd = -1
	return unix.Close(fd)
}

// tcp brings a TCP socket's detail up to date. [errClosed] if the kernel does not
// find the socket.
func (d *diag) tcp(id tcpID, into *series.Socket) error {
	return d.tcpFinds.use(func() error { return d.askTCP(id, into) })
}

// unix reads a Unix socket by its inode number. [errClosed] if the kernel does not
// find it.
func (d *diag) unix(inode uint64, into *series.Socket) error {
	return d.unixFinds.use(func() error { return d.askUnix(inode, into) })
}

func (d *diag) askTCP(id tcpID, into *series.Socket) error {
	order := binary.NativeEndian
	request := []byte{id.family, unix.IPPROTO_TCP, 1<<(inetDiagInfo-1) | 1<<(inetDiagCong-1) | 1<<(inetDiagMeminfo-1), 0}
	request = order.AppendUint32(request, anyState)
	request = binary.BigEndian.AppendUint16(request, id.ports[0])
	request = binary.BigEndian.AppendUint16(request, id.ports[1])
	request = append(append(request, id.addresses[0][:]...), id.addresses[1][:]...)
	request = order.AppendUint32(request, id.zone)
	request = order.AppendUint32(request, uint32(id.cookie))
	request = order.AppendUint32(request, uint32(id.cookie>>32))
	answer, err := d.ask(request, inetMessageBytes)
	if err != nil {
		return err
	}
	return attributes(answer[inetMessageBytes:], tcpAttribute(into))
}

// tcpAttribute takes over what is told of a TCP socket.
func tcpAttribute(into *series.Socket) func(kind uint16, value []byte) {
	return func(kind uint16, value []byte) {
		switch kind {
		case inetDiagInfo:
			var info unix.TCPInfo // older kernels tell less, newer ones more
			copy(unsafe.Slice((*byte)(unsafe.Pointer(&info)), unsafe.Sizeof(info)), value)
			tcpInto(&info, into.TCP)
		case inetDiagCong:
			into.TCP.Congestion = text(value)
		case inetDiagMeminfo:
			memoryFrom(value).into(into)
		}
	}
}

func (d *diag) askUnix(inode uint64, into *series.Socket) error {
	order := binary.NativeEndian
	request := []byte{unix.AF_UNIX, 0, 0, 0}
	request = order.AppendUint32(request, anyState)
	request = order.AppendUint32(request, uint32(inode))
	request = order.AppendUint32(request, unixShowName|unixShowPeer|unixShowMeminfo)
	request = append(request, strings.Repeat("\xff", 8)...) // any cookie
	answer, err := d.ask(request, unixMessageBytes)
	if err != nil {
		return err
	}
	return attributes(answer[unixMessageBytes:], unixAttribute(into))
}

// unixAttribute takes over what is told of a Unix socket.
func unixAttribute(into *series.Socket) func(kind uint16, value []byte) {
	return func(kind uint16, value []byte) {
		switch {
		case kind == unixDiagName:
			into.Local = text(value)
		case kind == unixDiagPeer && len(value) == 4:
			into.Peer = fmt.Sprintf("socket:[%d]", binary.NativeEndian.Uint32(value))
		case kind == unixDiagMeminfo:
			memoryFrom(value).into(into)
		}
	}
}

// text is a name; an abstract one begins with a zero byte, shown as @.
func text(value []byte) string {
	name := string(value)
	if rest, abstract := strings.CutPrefix(name, "\x00"); abstract {
		name = "@" + rest
	}
	return strings.ToValidUTF8(strings.TrimRight(name, "\x00"), "?")
}

func memoryFrom(value []byte) (words memoryWords) {
	for i := range words {
		if len(value) >= 4*(i+1) {
			words[i] = binary.NativeEndian.Uint32(value[4*i:])
		}
	}
	return words
}

// ask sends a request and returns the answer, without its header, which is at
// least so long. The kernel answers within the sending, so there is no waiting.
func (d *diag) ask(request []byte, least int) ([]byte, error) {
	if err := d.open(); err != nil {
		return nil, err
	}
	d.sequence++
	message := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(request)))
	message = binary.NativeEndian.AppendUint16(message, unix.SOCK_DIAG_BY_FAMILY)
	message = binary.NativeEndian.AppendUint16(message, unix.NLM_F_REQUEST)
	message = binary.NativeEndian.AppendUint32(message, d.sequence)
	message = binary.NativeEndian.AppendUint32(message, 0)
	message = append(message, request...)
	if err := unix.Sendto(d.fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, unasked(err)
	}
	for {
		n, _, err := unix.Recvfrom(d.fd, d.buffer[:], unix.MSG_DONTWAIT)
		if err != nil {
			return nil, fmt.Errorf("sock_diag: answer: %w", err)
		}
		if answer, mine, err := parseAnswer(d.buffer[:n], d.sequence, least); mine {
			return answer, err
		}
	}
}

func (d *diag) open() (err error) {
	if d.fd < 0 {
		d.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		if err != nil {
			d.fd = -1
			return unasked(err)
		}
	}
	return nil
}

// unasked is the error of a question that this process may not ask, as in a sandbox without
// netlink: the socket counts as one that the kernel does not find.
// One that failed for want of something may be asked again.
func unasked(err error) error {
	if passing.Error(err) {
		return fmt.Errorf("sock_diag: %w", err)
	}
	return fmt.Errorf("%w: sock_diag: %w", errClosed, err)
}

// errAnswer says that the kernel's answer does not look as it should.
var errAnswer = errors.New("malformed answer of sock_diag")

// parseAnswer returns what a message holds. mine is false for an answer to an
// earlier request, which was given up.
func parseAnswer(data []byte, sequence uint32, least int) (answer []byte, mine bool, err error) {
	if len(data) < unix.SizeofNlMsghdr {
		return nil, true, errAnswer
	}
	order := binary.NativeEndian
	size, kind := int(order.Uint32(data)), order.Uint16(data[4:])
	if order.Uint32(data[8:]) != sequence {
		return nil, false, nil
	}
	if size < unix.SizeofNlMsghdr || size > len(data) {
		return nil, true, errAnswer
	}
	answer = data[unix.SizeofNlMsghdr:size]
	switch {
	case kind == unix.NLMSG_ERROR && len(answer) >= 4:
		return nil, true, refusal(unix.Errno(-int32(order.Uint32(answer))))
	case kind != unix.SOCK_DIAG_BY_FAMILY || len(answer) < least:
		return nil, true, errAnswer
	}
	return answer, true, nil
}

// refusal is what the kernel says of a socket that it does not find.
func refusal(errno unix.Errno) error {
	if errno == unix.ENOENT || errno == unix.ESTALE {
		return errClosed
	}
	return fmt.Errorf("sock_diag: %w", errno)
}

// attributes goes through a list of netlink attributes.
func attributes(data []byte, each func(kind uint16, value []byte)) error {
	const header = unix.SizeofNlAttr
	for len(data) >= header {
		size := int(binary.NativeEndian.Uint16(data))
		if size < header || size > len(data) {
			return errAnswer
		}
		each(binary.NativeEndian.Uint16(data[2:]), data[header:size])
		data = data[min(len(data), (size+3)&^3):]
	}
	return nil
}

// newTCPID names a socket by its addresses and cookie.
func newTCPID(local, peer unix.Sockaddr, cookie uint64) tcpID {
	id := tcpID{family: unix.AF_INET, cookie: cookie}
	for i, address := range []unix.Sockaddr{local, peer} {
		switch a := address.(type) {
		case *unix.SockaddrInet4:
			copy(id.addresses[i][:], a.Addr[:])
			id.ports[i] = uint16(a.Port)
		case *unix.SockaddrInet6:
			id.family = unix.AF_INET6
			id.addresses[i], id.zone = a.Addr, max(id.zone, a.ZoneId)
			id.ports[i] = uint16(a.Port)
		}
	}
	return id
}
