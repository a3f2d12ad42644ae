// SPDX-License-Identifier: Apache-2.0

package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/unixmsg"
)

const (
	// packetSize is the most of a message that goes in one packet, with a byte
	// that says whether more of it follows.
	packetSize = 4 << 10
	// mostFromChild bounds a message to attuned, mostToChild one from it, which
	// may be the site's policy.
	mostFromChild = 1 << 20
	mostToChild   = 4 << 20
	// peerPatience is how long the other side may take nothing, or not answer: it has to be
	// told from one on a machine that has twenty times more to do than it can.
	peerPatience = 30 * time.Second
)

const (
	lastPacket byte = iota
	morePackets
)

// errWire says that the other side does not keep to the protocol.
var errWire = errors.New("protocol between attuned and the process of a session")

// send sends a message, in one piece as far as others see. The caller keeps others
// from sending at the same time.
func send(conn *net.UnixConn, m message, fd int) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("message %q: %w", m.Kind, err)
	}
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	if err := conn.SetWriteDeadline(time.Now().Add(peerPatience)); err != nil {
		return err
	}
	packet := make([]byte, 0, min(packetSize, 1+len(text)))
	for first := true; first || len(text) > 0; first = false {
		part := text[:min(len(text), packetSize-1)]
		text = text[len(part):]
		flag := lastPacket
		if len(text) > 0 {
			flag = morePackets
		}
		packet = append(append(packet[:0], flag), part...)
		if _, _, err := conn.WriteMsgUnix(packet, rights, nil); err != nil {
			return fmt.Errorf("message %q: %w", m.Kind, err)
		}
		rights = nil
	}
	return nil
}

// receive reads a message of at most so many bytes, with one descriptor at most or, if maxFiles
// is 0, none. The descriptor is the caller's.
func receive(conn *net.UnixConn, most, maxFiles int) (m message, file *os.File, err error) {
	defer func() {
		if err != nil && file != nil {
			_ = file.Close() // nobody wants it
			file = nil
		}
	}()
	var text []byte
	for {
		packet, files, err := unixmsg.Read(conn, packetSize, maxFiles)
		if err != nil {
			return m, file, err
		}
		for _, f := range files {
			if file != nil {
				_ = f.Close()
				return m, file, fmt.Errorf("%w: more than one descriptor", errWire)
			}
			file = f
		}
		switch {
		case len(packet) < 2 || len(packet) > packetSize || packet[0] > morePackets:
			return m, file, fmt.Errorf("%w: a packet of %d bytes", errWire, len(packet))
		case len(text)+len(packet)-1 > most:
			return m, file, fmt.Errorf("%w: a message of more than %d bytes", errWire, most)
		}
		text = append(text, packet[1:]...)
		if packet[0] == lastPacket {
			break
		}
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, file, fmt.Errorf("%w: %w", errWire, err)
	}
	return m, file, nil
}

// connOf makes a connection of a socket, which it takes over.
func connOf(file *os.File) (*net.UnixConn, error) {
	conn, err := net.FileConn(file)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%w: no unix socket", errWire), conn.Close())
	}
	return unixConn, nil
}

// socketPair makes two sockets that are connected, of a type of socket(2).
func socketPair(kind int) (own *net.UnixConn, other *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("pair of sockets: %w", err)
	}
	other = os.NewFile(uintptr(fds[1]), "socket")
	if own, err = connOf(os.NewFile(uintptr(fds[0]), "socket")); err != nil {
		return nil, nil, errors.Join(err, other.Close())
	}
	return own, other, nil
}

// textPair is a socketPair of streams, whose own end takes no descriptors: the process at the
// other may have been taken over.
func textPair() (own *unixmsg.Text, other *os.File, err error) {
	conn, other, err := socketPair(unix.SOCK_STREAM)
	if err != nil {
		return nil, nil, err
	}
	if own, err = unixmsg.NewText(conn); err != nil {
		return nil, nil, errors.Join(err, other.Close())
	}
	return own, other, nil
}
