// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

// What is beside the socket of a gate whose controller is still coming up
// (dmlib_gate.h).
const (
	// EarlySocket follows the gate's path: Options.Early is what listens there.
	EarlySocket = ".early"
	// EarlyHeaders follows the gate's path: a file with ring.Headers.
	EarlyHeaders = ".headers"
)

// earlyFiles come with the hello of a process that brings its own memory: the
// memory file and a pidfd of itself.
const earlyFiles = 2

// earlyListener makes a listener of a socket; nil of nil.
func earlyListener(socket *os.File) (*net.UnixListener, error) {
	if socket == nil {
		return nil, nil
	}
	listener, err := net.FileListener(socket)
	if err = errors.Join(err, socket.Close()); err != nil {
		return nil, fmt.Errorf("socket for early processes: %w", err)
	}
	unixListener, ok := listener.(*net.UnixListener)
	if !ok {
		return nil, errors.Join(errors.New("socket for early processes: no Unix socket"), listener.Close())
	}
	unixListener.SetUnlinkOnClose(false) // who made it removes it
	return unixListener, nil
}

func closeIfAny(listener *net.UnixListener) error {
	if listener == nil {
		return nil
	}
	return listener.Close()
}

// serveEarly takes over a process that has left its memory. It runs meanwhile, or
// has ended.
func (g *Gate) serveEarly(conn *net.UnixConn) {
	// Its only error is that the connection is closed, which reading will say.
	_ = conn.SetDeadline(time.Now().Add(g.options.patience))
	early, err := readEarly(conn)
	attachment := Attachment{Peer: early.peer, Hello: early.hello}
	if err == nil {
		attachment.Memory, err = g.adopt(early)
	}
	if err != nil {
		early.close()
		attachment.Pidfd = nil
		g.options.Refused(Refusal{Peer: attachment.Peer, Hello: early.hello, Err: err})
		return
	}
	g.options.Attached(attachment)
}

// adopt maps the memory, which it closes in the end.
func (g *Gate) adopt(early earlyProcess) (*ring.Memory, error) {
	if err := g.options.Admit(early.peer); err != nil {
		return nil, errors.Join(err, early.memory.Close())
	}
	memory, err := ring.Adopt(early.memory)
	if err != nil {
		return nil, err
	}
	if err := memory.CloseFile(); err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	if !memory.App().Ready {
		return nil, errors.Join(fmt.Errorf("%w: a memory file whose header is not ready", ErrProtocol), memory.Close())
	}
	memory.SetOwner(g.owner)
	return memory, nil
}

// earlyProcess is what a process has left.
type earlyProcess struct {
	peer   peercred.Peer
	hello  Hello
	memory *os.File
}

// close frees what adopt has not taken.
func (e earlyProcess) close() {
	if e.peer.Pidfd != nil {
		_ = e.peer.Pidfd.Close()
	}
}

// readEarly reads what was left. The process may have ended since, and its id be
// another's: the pidfd tells, which must be that of who connected.
func readEarly(conn *net.UnixConn) (e earlyProcess, err error) {
	message, files, err := unixmsg.Read(conn, helloSize, earlyFiles)
	defer func() {
		for _, file := range files {
			_ = file.Close() // those that are not wanted
		}
	}()
	if err != nil {
		return e, err
	}
	if e.hello, err = DecodeHello(message); err != nil {
		return e, err
	}
	if len(files) != earlyFiles || e.hello.Flags&Early == 0 {
		return e, fmt.Errorf("%w: %d descriptors and flags %#x of an early process", ErrProtocol, len(files), e.hello.Flags)
	}
	if e.peer, err = peercred.Of(conn); err != nil {
		return e, err
	}
	if pid, err := procid.OfPidfd(int(files[1].Fd())); err != nil || pid != e.peer.PID {
		return e, fmt.Errorf("pid %d left the pidfd of %d: %w", e.peer.PID, pid, cmp.Or(err, ErrProtocol))
	}
	e.memory, e.peer.Pidfd, files = files[0], files[1], nil
	return e, nil
}
