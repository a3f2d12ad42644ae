// SPDX-License-Identifier: Apache-2.0

package peercred

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Peer is the process at the other end, as the kernel knows it.
type Peer struct {
	// PID is its id in the caller's pid namespace; 0: it is in another one.
	PID int
	// UID and GID are its effective ids when it connected.
	UID, GID int
	// Pidfd refers to the process itself, whatever becomes of the id. See
	// where the Peer came from for who closes it.
	Pidfd *os.File
}

// OfDescriptor is Of for the descriptor of a connection.
func OfDescriptor(fd int) (Peer, error) { return of(fd) }

// Of says who is at the other end, without a Pidfd. It fails for anything but
// a connected Unix socket, and with [ErrNoUser] for a peer whose user cannot
// be told from others.
func Of(conn syscall.Conn) (Peer, error) {
	var peer Peer
	err := control(conn, func(fd int) (err error) {
		peer, err = of(fd)
		return err
	})
	return peer, err
}

// Hold is Of with a Pidfd, which the caller closes. It fails also for a peer
// that has ended or is outside the caller's pid namespace.
func Hold(conn syscall.Conn) (Peer, error) {
	var peer Peer
	err := control(conn, func(fd int) (err error) {
		if peer, err = of(fd); err != nil {
			return err
		}
		if peer.PID <= 0 {
			return errors.New("the peer is outside this process' pid namespace: run the controller outside the container")
		}
		pidfd, err := pidfdOf(fd, peer.PID)
		if err == nil {
			peer.Pidfd = os.NewFile(uintptr(pidfd), fmt.Sprintf("pidfd of %d", peer.PID))
		}
		return err
	})
	return peer, err
}

func control(conn syscall.Conn, use func(fd int) error) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("descriptor of the connection: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = use(int(fd)) })
	return errors.Join(err, failed)
}

func of(fd int) (Peer, error) {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err == nil && domain != unix.AF_UNIX {
		err = errors.New("not a Unix socket") // of others the kernel says pid 0, user -1
	}
	var cred *unix.Ucred
	if err == nil {
		cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	}
	if err != nil {
		return Peer{}, fmt.Errorf("credentials of the peer: %w", err)
	}
	peer := Peer{PID: int(cred.Pid), UID: int(cred.Uid), GID: int(cred.Gid)}
	return peer, distinct(cred.Uid)
}

// pidfdOf gets the descriptor that belongs to the connection (Linux 6.5), else
// opens one by id; the kernel makes either close-on-exec. In between the peer
// could have died and its id been given away, but not without its end of the
// connection being closed, which the next read finds.
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

// ErrNoUser means that the kernel gave the peer an id that stands for
// everybody whom this process' user namespace does not know.
var ErrNoUser = errors.New("user is not known in this user namespace")

// noUID is what the kernel says of a peer that it has no ids of.
const noUID = ^uint32(0)

// distinct refuses ids that more than one user has: in a user namespace all
// that are not mapped look the same (user_namespaces(7)), and one of them must
// not pass for another. A process that is not mapped itself talks to its own
// kind, as it could not tell its own children otherwise.
func distinct(uid uint32) error {
	if uid == noUID || uid == sharedUID() && int(uid) != os.Geteuid() {
		return fmt.Errorf("%w: id %d", ErrNoUser, uid)
	}
	return nil
}

// sharedUID is the id that stands for all users who are not mapped, noUID where
// everybody is.
var sharedUID = sync.OnceValue(func() uint32 {
	ids, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || mapsAll(string(ids)) {
		return noUID
	}
	const usual = 65534
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return usual
	}
	id, err := strconv.ParseUint(strings.TrimSpace(string(overflow)), 10, 32)
	if err != nil {
		return usual
	}
	return uint32(id)
})

// mapsAll says whether a uid_map leaves nobody out.
func mapsAll(ids string) bool {
	fields := strings.Fields(ids)
	return len(fields) == 3 && fields[0] == "0" && fields[2] == "4294967295"
}
