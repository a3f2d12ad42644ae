// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Peer is the process at the other end, as the kernel knows it.
type Peer struct {
	// PID is its id in the controller's pid namespace.
	PID int
	// UID and GID are its effective ids when it connected.
	UID, GID int
	// Pidfd refers to the process itself, whatever becomes of the id. See
	// where the Peer came from for who closes it.
	Pidfd *os.File
}

// peerOf asks the kernel who connected. The caller closes Pidfd.
func peerOf(conn *net.UnixConn) (Peer, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("descriptor of the connection: %w", err)
	}
	var peer Peer
	var failed error
	err = raw.Control(func(fd uintptr) { peer, failed = peerOfFD(int(fd)) })
	return peer, errors.Join(err, failed)
}

func peerOfFD(fd int) (Peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, fmt.Errorf("credentials of the peer: %w", err)
	}
	peer := Peer{PID: int(cred.Pid), UID: int(cred.Uid), GID: int(cred.Gid)}
	if peer.PID <= 0 {
		return peer, errors.New("the peer is outside the controller's pid namespace: run the controller outside the container")
	}
	pidfd, err := pidfdOf(fd, peer.PID)
	if err != nil {
		return peer, err
	}
	peer.Pidfd = os.NewFile(uintptr(pidfd), fmt.Sprintf("pidfd of %d", peer.PID))
	return peer, nil
}

// pidfdOf gets the descriptor that belongs to the connection (Linux 6.5), else
// opens one by id; the kernel makes either close-on-exec. In between the peer could have died and its id been given
// away, but not without its end of the connection being closed, which the
// next read finds.
func pidfdOf(conn, pid int) (int, error) {
	pidfd, err := unix.GetsockoptInt(conn, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if errors.Is(err, unix.ENOPROTOOPT) {
		pidfd, err = unix.PidfdOpen(pid, 0)
	}
	if err != nil {
		return -1, fmt.Errorf("pidfd of process %d: %w", pid, err)
	}
	return pidfd, nil
}
