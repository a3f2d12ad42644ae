// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/passing"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

// earlyFiles come with the hello of a process that brings its own memory: the
// memory file and a pidfd of itself.
const earlyFiles = 2

const (
	// betweenLooks is from one look at what was left to the beat after which the next
	// is made. Nobody waits for it, and most of the processes that a script starts
	// have ended by then.
	betweenLooks = 40 * time.Millisecond
	// crowd is after how many that came the next beat is not let pass: the kernel
	// holds no more descriptors for a user than a process may have open.
	crowd = 64
)

// leaving is a process that has connected and not left its memory yet.
type leaving struct {
	fd    int
	peer  peercred.Peer
	since time.Time
}

// serveEarly takes over processes that have left their memory, until the Gate is
// closed.
func (g *Gate) serveEarly() error {
	var slow []leaving
	defer func() {
		for _, l := range slow {
			g.part(l)
		}
		g.early.close()
	}()
	rest := time.Duration(0) // before the beat that is waited for
	for quiet := beat.Quiet; ; quiet++ {
		if quiet >= beat.Quiet && len(slow) == 0 {
			rest = 0
			if err := g.early.wait(); err != nil {
				return fmt.Errorf("socket for early processes: %w", err)
			}
		}
		g.pause(time.Until(beat.Next(time.Now().Add(rest))))
		if !g.begin() {
			return nil
		}
		var came int
		var err error
		slow, came, err = g.look(slow)
		g.handlers.Done()
		if err != nil {
			return err
		}
		rest = betweenLooks
		if came > 0 {
			quiet = 0
		}
		if came >= crowd {
			rest = 0
		}
	}
}

// look takes over who has left memory. It returns who is about to, and how many
// came.
func (g *Gate) look(slow []leaving) (left []leaving, came int, err error) {
	var refused unixmsg.Refused
	defer func() { _ = refused.Close() }() // nothing was read
	for _, l := range slow {
		if !g.take(l) {
			left = append(left, l)
		}
	}
	for ; came < backlog && len(left) < g.options.connections; came++ {
		fd, err := g.early.accept()
		switch {
		case errors.Is(err, unix.EAGAIN):
			return left, came, nil
		case passing.Error(err):
			g.options.Log.Warn("processes that have left their memory have to wait", "reason", err)
			return left, came, nil
		case err != nil:
			return left, came, fmt.Errorf("socket for early processes: %w", err)
		}
		if l, ok := g.meet(fd, &refused); ok && !g.take(l) {
			left = append(left, l)
		}
	}
	return left, came, nil
}

// meet asks who has connected, and refuses whom the gate does not serve, and whoever
// is about to leave too much at a time: neither is waited for.
func (g *Gate) meet(fd int, refused *unixmsg.Refused) (l leaving, ok bool) {
	peer, err := peercred.OfDescriptor(fd)
	if err == nil {
		err = g.options.Admit(peer)
	}
	if err != nil {
		refused.AddDescriptor(fd)
		g.strangers.tell(peer, err)
		return leaving{}, false
	}
	if !g.perPID.Enter(peer.PID) {
		_ = unix.Close(fd) // of the session's user, whom nobody else waits for
		g.options.Refused(Refusal{Peer: peer, Err: ErrBusy})
		return leaving{}, false
	}
	return leaving{fd, peer, time.Now()}, true
}

// part ends what meet began.
func (g *Gate) part(l leaving) {
	_ = unix.Close(l.fd) // DMLib expects no answer
	g.perPID.Leave(l.peer.PID)
}

// take takes over a process, which runs meanwhile or has ended; false if it has not
// left its memory yet, or no descriptor is free for it.
func (g *Gate) take(l leaving) bool {
	early, err := earlyProcess{peer: l.peer}, error(procid.ErrGone) // what it left goes with the connection
	if !errors.Is(unix.Kill(l.peer.PID, 0), unix.ESRCH) {
		early, err = readEarly(l.fd, l.peer)
	}
	if passing.Error(err) {
		if time.Since(l.since) < g.options.patience {
			return false
		}
		if errors.Is(err, unix.EAGAIN) {
			err = fmt.Errorf("%w: nothing was left within %s", ErrProtocol, g.options.patience)
		}
	}
	g.part(l)
	attachment := Attachment{Peer: early.peer, Hello: early.hello}
	if err == nil {
		attachment.Memory, err = g.adopt(early)
	}
	if err != nil {
		early.close()
		attachment.Pidfd = nil
		g.options.Refused(Refusal{Peer: attachment.Peer, Err: err})
		return true
	}
	g.options.Attached(attachment)
	return true
}

// adopt maps the memory, whose file it owns.
func (g *Gate) adopt(early earlyProcess) (*shm.Memory, error) {
	memory, err := shm.Adopt(early.memory)
	if err != nil {
		return nil, err
	}
	if !memory.App().Ready {
		return nil, errors.Join(fmt.Errorf("%w: a memory file whose header is not ready", ErrProtocol), memory.Close())
	}
	if err := checkExecutable(early.peer.PID, memory); err != nil {
		return nil, errors.Join(err, memory.Close())
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

// readEarly reads what was left. After an error that passes it may be called again:
// unix.EAGAIN is that nothing was left yet. The process may have ended
// since, procid.ErrGone, and its id be another's: the pidfd tells, which must be that of
// who connected.
func readEarly(conn int, peer peercred.Peer) (e earlyProcess, err error) {
	e.peer = peer
	message, files, err := unixmsg.Peek(conn, abi.HelloBytes, earlyFiles)
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
	if procid.Ended(int(files[1].Fd())) {
		return e, procid.ErrGone // or it is no pidfd: nothing of it is used
	}
	if pid, err := procid.OfPidfd(int(files[1].Fd())); err != nil || pid != e.peer.PID {
		return e, fmt.Errorf("pid %d left the pidfd of %d: %w", e.peer.PID, pid, cmp.Or(err, ErrProtocol))
	}
	e.memory, e.peer.Pidfd, files = files[0], files[1], nil
	return e, nil
}
