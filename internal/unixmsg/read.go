// SPDX-License-Identifier: Apache-2.0

package unixmsg

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/pending"
)

const descriptorSize = 4 // bytes

// ErrTooManyFiles says that a packet came with more descriptors than it may have.
var ErrTooManyFiles = errors.New("too many descriptors in a message")

// Read reads one packet of at most size bytes, and as many descriptors as may
// come with it; if none may, they are not taken, [ErrUnwanted]. The caller closes the files, which are close-on-exec; with an
// error there are none. A packet that is longer is returned with size + 1 bytes.
// [io.EOF]: the other end hung up without a word. What has come is read though the
// deadline has passed.
func Read(conn *net.UnixConn, size, maxFiles int) (message []byte, files []*os.File, err error) {
	message = make([]byte, size+1)
	var control []byte
	if maxFiles > 0 {
		control = make([]byte, unix.CmsgSpace(maxFiles*descriptorSize))
	} else if err := lookForFiles(conn, message); err != nil {
		return nil, nil, err
	}
	n, controls, flags, _, err := conn.ReadMsgUnix(message, control)
	if pending.Late(conn, err) {
		n, controls, flags, _, err = conn.ReadMsgUnix(message, control)
	}
	if err != nil && (!errors.Is(err, io.EOF) || hungUp(n, controls, flags)) {
		return nil, nil, err
	}
	files, err = filesOf(control[:controls], flags, maxFiles)
	if err != nil {
		return nil, nil, err
	}
	return message[:n], files, nil
}

// lookForFiles waits for a packet, which stays in the socket: [ErrUnwanted] if descriptors come
// with it. It uses b.
func lookForFiles(conn *net.UnixConn, b []byte) error {
	_, err := peekText(conn, b)
	if pending.Late(conn, err) {
		_, err = peekText(conn, b)
	}
	return err
}

// Peek is Read for a descriptor, does not wait, [unix.EAGAIN], and leaves the packet in
// the socket, which the caller closes: Peek finds the packet again after [unix.EMFILE],
// which says that no descriptor is free for those that come with the packet.
func Peek(fd, size, maxFiles int) (message []byte, files []*os.File, err error) {
	message = make([]byte, size+1)
	control := make([]byte, unix.CmsgSpace(maxFiles*descriptorSize))
	n, controls, flags, _, err := unix.Recvmsg(fd, message, control, unix.MSG_PEEK|unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("receive a message: %w", err)
	case hungUp(n, controls, flags):
		return nil, nil, io.EOF
	}
	files, err = filesOf(control[:controls], flags, maxFiles)
	if err != nil {
		return nil, nil, err
	}
	return message[:n], files, nil
}

// hungUp says whether a read without bytes is the end. A packet of no bytes may come with
// descriptors, which this process has by then, or with more than it can have.
func hungUp(n, controls, flags int) bool {
	return n == 0 && controls == 0 && flags&unix.MSG_CTRUNC == 0
}

// filesOf returns the descriptors that came, all or none. The kernel says that it has cut
// them off, and not why: for want of room in control, or of free descriptors.
func filesOf(control []byte, flags, maxFiles int) ([]*os.File, error) {
	files, err := parse(control)
	switch {
	case flags&unix.MSG_CTRUNC == 0:
	case len(files) < maxFiles:
		err = errors.Join(err, fmt.Errorf("take the descriptors of a message: %w", unix.EMFILE))
	default:
		err = errors.Join(err, ErrTooManyFiles)
	}
	if err != nil {
		for _, file := range files {
			_ = file.Close() // nobody wants it
		}
		return nil, err
	}
	return files, nil
}

func parse(control []byte) (files []*os.File, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("descriptors of a message: %w", err)
	}
	for i := range messages {
		if len(messages[i].Data)%descriptorSize != 0 { // ParseUnixRights would go beyond its end
			err = errors.Join(err, errors.New("descriptors of a message are cut off"))
			continue
		}
		fds, rightsErr := unix.ParseUnixRights(&messages[i])
		if rightsErr != nil {
			err = errors.Join(err, rightsErr) // credentials, which nobody asked for
			continue
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, err
}
