// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/pending"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

// What a process says when it joins; struct join of dmlib/glue/job.c.
const (
	joinMagic   = "ATTUNEPK"
	joinVersion = 2
	joinSize    = 24
	joinParent  = 12 // offset of its parent's pid, as it sees it
	joinStart   = 16 // offset of its start, clock ticks since boot
	joinFiles   = 1  // a pidfd of itself, at most
)

// joinPatience is how long a connection that says nothing is listened to: who
// joins has spoken before it is accepted. On a node with more threads than CPUs
// much time may pass before the read looks.
const joinPatience = 2 * time.Second

// whoJoins returns the process at the other end, of this user. It has sent its
// message and hung up, and may have ended: the pidfd that it sent says who it
// was. After an error that passes, whoJoins may be called again.
func whoJoins(conn *net.UnixConn) (member, error) {
	peer, err := peercred.Of(conn)
	if err != nil {
		return member{}, err
	}
	if peer.UID != os.Geteuid() {
		return member{}, fmt.Errorf("process of user %d", peer.UID)
	}
	message, files, err := peekJoin(conn)
	defer func() {
		for _, file := range files {
			_ = file.Close() // it was duplicated, or is not wanted
		}
	}()
	if err != nil {
		return member{}, err
	}
	if len(message) != joinSize || string(message[:len(joinMagic)]) != joinMagic ||
		binary.LittleEndian.Uint32(message[len(joinMagic):]) != joinVersion {
		return member{}, errors.New("this is no packed program")
	}
	process, err := joined(peer.PID, binary.LittleEndian.Uint64(message[joinStart:]), files)
	return member{process: process, parent: int(int32(binary.LittleEndian.Uint32(message[joinParent:])))}, err
}

// peekJoin returns what the process says, with its pidfd; it can be called again. Reading
// would lose the pidfd where no descriptor is free for it.
func peekJoin(conn *net.UnixConn) (message []byte, files []*os.File, err error) {
	raw, err := conn.SyscallConn()
	if err == nil {
		err = conn.SetReadDeadline(time.Now().Add(joinPatience))
	}
	if err != nil {
		return nil, nil, err
	}
	peek := func(fd uintptr) bool {
		message, files, err = unixmsg.Peek(int(fd), joinSize, joinFiles)
		return !errors.Is(err, unix.EAGAIN)
	}
	waited := raw.Read(peek)
	if pending.Late(conn, waited) {
		waited = raw.Read(peek)
	}
	if waited != nil {
		return nil, nil, waited
	}
	return message, files, err
}

// joined is the process with that pid and start, by its pidfd if there is one. It
// had none to send where too many were under way.
func joined(pid int, start uint64, files []*os.File) (*procid.Process, error) {
	if len(files) > 0 {
		pidfd, err := unix.FcntlInt(files[0].Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		return procid.Adopt(pidfd, pid, start)
	}
	process, err := procid.Open(pid)
	if err == nil && process.Identity().StartTicks != start {
		err = errors.Join(procid.ErrGone, process.Close())
	}
	return process, err
}
