// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

// What is beside the socket of a gate at which processes need not wait
// (dmlib_gate.h).
const (
	// EarlySocket follows the gate's path: there they leave their memory files.
	EarlySocket = ".early"
	// EarlyHeaders follows the gate's path: a file with ring.Headers.
	EarlyHeaders = ".headers"
)

// earlyRest is between two looks at what was left. Nobody waits for them, and most
// of the processes that a script starts have ended by then.
const earlyRest = 5 * time.Millisecond

// othersHeaders is the mode of the file with the headers where other users' processes
// read it.
const othersHeaders = 0o644

// earlyFiles come with the hello of a process that brings its own memory: the
// memory file and a pidfd of itself.
const earlyFiles = 2

// earlyListener makes a listener of the socket that is there, or a socket; nil
// where the path is too long for one.
func earlyListener(o Options) (*net.UnixListener, error) {
	if o.Early != nil {
		return listenerOf(o.Early)
	}
	if len(o.Path)+len(EarlySocket) > maxPath {
		return nil, nil
	}
	return listen(o.Path+EarlySocket, o.Mode)
}

func listenerOf(socket *os.File) (*net.UnixListener, error) {
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

// SetEarly says whether new processes may bring their memory files and wait for
// nobody: whether nothing has to be in place before their main. A process that
// starts after it has returned obeys. At first they may if Options.Early is there.
// The sign is the name of the file with the headers.
func (g *Gate) SetEarly(may bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns == nil {
		return nil
	}
	shown, hidden := g.headers()
	if may {
		return unlessMissing(os.Rename(hidden, shown))
	}
	return unlessMissing(os.Rename(shown, hidden))
}

// headers are the names of the file with the headers, while new processes may come
// early and while they may not.
func (g *Gate) headers() (shown, hidden string) {
	shown = g.options.Path + EarlyHeaders
	return shown, shown + ".not-now"
}

// writeHeaders writes it, not to be found yet. Whoever made Options.Early has.
func (g *Gate) writeHeaders() error {
	if g.options.Early != nil || g.early == nil {
		return nil
	}
	content, err := ring.Headers(g.options.Geometry)
	if err != nil {
		return err
	}
	_, hidden := g.headers()
	if err := os.WriteFile(hidden, content, privateSocket); err != nil || g.options.Mode == 0 {
		return err
	}
	return os.Chmod(hidden, othersHeaders) // others' processes come, too
}

// removeHeaders leaves nothing behind.
func (g *Gate) removeHeaders() {
	shown, hidden := g.headers()
	_, _ = os.Remove(shown), os.Remove(hidden) // one is not there, or the folder is gone
}

// unlessMissing drops the error that a file is not there: its name says already what
// it is to say.
func unlessMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// serveEarly takes over a process that has left its memory. It runs meanwhile, or
// has ended.
func (g *Gate) serveEarly(conn *net.UnixConn) {
	// Its only error is that the connection is closed, which reading will say.
	_ = conn.SetDeadline(time.Now().Add(g.options.patience))
	early, err := readEarly(conn)
	attachment := Attachment{Peer: early.peer, Hello: early.hello}
	if err == nil {
		err = early.alive()
	}
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

// alive closes the memory of a process that has ended; procid.ErrGone.
func (e earlyProcess) alive() error {
	if procid.Ended(int(e.peer.Pidfd.Fd())) {
		return errors.Join(procid.ErrGone, e.memory.Close())
	}
	return nil
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
