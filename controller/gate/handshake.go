// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/pending"
)

var (
	// ErrNoMap means that the process could not map the memory file, mostly
	// because of a limit of its address space. It comes again for a smaller
	// one.
	ErrNoMap = errors.New("memory file does not fit into the process")
	// ErrTranslated means that the code of DMLib, where DMLib says that it is, is not for
	// the processor to execute: an emulator translates it with its program. Nothing in
	// the process may be led there.
	ErrTranslated = errors.New("DMLib is in an emulated program, whose code the processor does not execute")
	// ErrBusy means that the process has several connections open already.
	ErrBusy = errors.New("too many connections of one process")
)

// serve has one conversation and reports its outcome.
func (g *Gate) serve(conn *net.UnixConn) {
	met := time.Now()
	// Its only error is that the connection is closed, which reading will say.
	_ = conn.SetDeadline(time.Now().Add(g.options.patience))
	peer, err := peercred.Hold(conn)
	var talk conversation
	if err == nil {
		talk, err = g.converse(conn, peer)
	}
	if err != nil {
		if peer.Pidfd != nil {
			peer.Pidfd.Close()
			peer.Pidfd = nil
		}
		g.options.Refused(Refusal{Peer: peer, Err: err})
		return
	}
	var deadline time.Time
	if left := talk.hello.left(time.Since(met), g.options.Timeout); talk.held && left > 0 {
		deadline = time.Now().Add(left)
	}
	g.options.Attached(Attachment{Peer: peer, Hello: talk.hello, Memory: talk.memory, Deadline: deadline})
	if talk.held {
		// If the process is gone or has stopped waiting there is nobody to
		// tell.
		_, _ = conn.Write(encodeGo())
	}
}

// conversation is what converse came to.
type conversation struct {
	hello  Hello
	memory *shm.Memory
	held   bool // the process waits for go
}

// converse takes the peer from hello to ready.
func (g *Gate) converse(conn *net.UnixConn, peer peercred.Peer) (talk conversation, err error) {
	if !g.perPID.Enter(peer.PID) {
		return talk, ErrBusy
	}
	defer g.perPID.Leave(peer.PID)
	if talk.hello, err = readHello(conn); err != nil {
		// Another version understands a refusal, a broken peer may not.
		if errors.Is(err, ErrVersion) {
			refuse(conn)
		}
		return talk, err
	}
	memory, err := g.offer(talk.hello.Attempt)
	if err != nil {
		refuse(conn)
		return talk, err
	}
	forked := talk.hello.Flags&running != 0 // or injected
	talk.held = !forked && g.options.Hold(peer)
	err = handOver(conn, memory, !forked && !talk.held)
	if err == nil {
		err = checkExecutable(peer.PID, memory)
	}
	if err != nil {
		return talk, errors.Join(err, memory.Close())
	}
	talk.memory = memory
	return talk, nil
}

// offer makes the memory file for an attempt: each is smaller than the one
// before.
func (g *Gate) offer(attempt uint32) (*shm.Memory, error) {
	geometry := g.options.geometry
	for range attempt {
		smaller, ok := geometry.Smaller()
		if !ok {
			return nil, fmt.Errorf("%w: attempt %d, and %d bytes are the least", ErrNoMap, attempt, geometry.Bytes())
		}
		geometry = smaller
	}
	memory, err := shm.New(geometry)
	if err == nil {
		memory.SetOwner(g.owner)
	}
	return memory, err
}

// handOver sends the memory file, and go as well if nothing has to be in place
// before main, and waits until the process has mapped the file.
func handOver(conn *net.UnixConn, memory *shm.Memory, letGo bool) error {
	rights := unix.UnixRights(int(memory.File().Fd()))
	_, _, err := conn.WriteMsgUnix(encodeWelcome(abi.WelcomeOK, memory.Geometry().Bytes()), rights, nil)
	if err != nil {
		return fmt.Errorf("send memory file: %w", err)
	}
	if letGo {
		// If it cannot be sent the process is gone, which reading will say.
		_, _ = conn.Write(encodeGo())
	}
	b, err := readMessage(conn, abi.ReadyBytes)
	if err != nil {
		return fmt.Errorf("wait for ready: %w", err)
	}
	answer, err := decodeReady(b)
	if err != nil {
		return err
	}
	return judge(answer, memory)
}

// judge turns DMLib's answer into an error.
func judge(answer ready, memory *shm.Memory) error {
	switch answer.status {
	case abi.ReadyOK:
		if !memory.App().Ready {
			return fmt.Errorf("%w: ready without a header that says so", ErrProtocol)
		}
		return nil
	case abi.ReadyNoMap:
		return fmt.Errorf("%w: %d bytes: %w", ErrNoMap, memory.Geometry().Bytes(), unix.Errno(answer.errno))
	case abi.ReadyBadABI:
		return fmt.Errorf("%w: it does not accept the memory file", ErrVersion)
	}
	return fmt.Errorf("%w: ready with status %d", ErrProtocol, answer.status)
}

// checkExecutable looks whether the DMLib that has the memory can be executed. Where
// nothing is mapped, the process has executed another program since.
func checkExecutable(pid int, memory *shm.Memory) error {
	entry := memory.App().AttendEntry
	if entry == 0 {
		return nil // nothing will be led to it
	}
	mappings, err := objfile.Mappings(pid)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(mappings, func(m objfile.Mapping) bool { return !m.Exec && m.Start <= entry && entry < m.End }) {
		return ErrTranslated
	}
	return nil
}

func readHello(conn *net.UnixConn) (Hello, error) {
	b, err := readMessage(conn, abi.HelloBytes)
	if err != nil {
		return Hello{}, fmt.Errorf("wait for hello: %w", err)
	}
	return DecodeHello(b)
}

// readMessage reads one packet, and one byte more than it should have, so that
// a longer one shows. Descriptors that a peer sends along are closed by the
// kernel, because nobody asks for them. A ready may have come while the
// controller itself was not scheduled: then the process believes that it is
// attached, and so should we.
func readMessage(conn *net.UnixConn, size int) ([]byte, error) {
	b := make([]byte, size+1)
	n, err := conn.Read(b)
	if pending.Late(conn, err) {
		n, err = conn.Read(b)
	}
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the process went away")
	}
	return b[:n], err
}

// refuse tells the process not to wait. It may be gone; then that is fine too.
func refuse(conn *net.UnixConn) {
	_, _ = conn.Write(encodeWelcome(abi.WelcomeRefused, 0))
}
