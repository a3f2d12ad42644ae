// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/internal/dmtest"
	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/peercred"
	"github.com/attune-hpc/attune/internal/testing/leaktest"
	"github.com/attune-hpc/attune/internal/testing/longgate"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestMain fails if a test leaves a goroutine, a child or a descriptor behind.
func TestMain(m *testing.M) { leaktest.Main(m) }

// testGate is a gate that serves, with what came through and what did not.
type testGate struct {
	*Gate
	attached chan Attachment
	refused  chan Refusal
}

// mustServe starts a gate; what is not set in o is filled in.
func mustServe(t *testing.T, o Options) *testGate {
	t.Helper()
	g := mustOpen(t, o)
	g.serve(t)
	return g
}

// mustOpen makes a gate to which clients can come before it is served.
func mustOpen(t *testing.T, o Options) *testGate {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = longgate.Limit
	}
	g := &testGate{attached: make(chan Attachment, 1024), refused: make(chan Refusal, 1024)}
	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "run", "gate.sock")
	}
	if o.Attached == nil {
		o.Attached = func(a Attachment) { g.attached <- a }
	}
	if o.Hold == nil {
		o.Hold = func(peercred.Peer) bool { return true }
	}
	if o.Refused == nil {
		o.Refused = func(r Refusal) { g.refused <- r }
	}
	gate, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	g.Gate = gate
	return g
}

// serve serves the gate until the test ends.
func (g *testGate) serve(t *testing.T) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- g.Serve(context.Background()) }()
	t.Cleanup(func() {
		err := errors.Join(g.Close(), <-served, g.Close())
		close(g.attached)
		for a := range g.attached {
			err = errors.Join(err, release(a))
		}
		if err != nil {
			t.Error(err)
		}
	})
}

func release(a Attachment) error { return errors.Join(a.Memory.Close(), a.Pidfd.Close()) }

// client is DMLib's side of a conversation.
type client struct {
	t    testing.TB
	conn *net.UnixConn
}

func mustDial(t *testing.T, g *testGate) *client {
	t.Helper()
	return mustDialAt(t, g.options.Path)
}

// mustDialAt connects to a socket by its path.
func mustDialAt(t *testing.T, path string) *client {
	t.Helper()
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Net: "unixpacket", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience.Limit)); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn}
}

func (c *client) send(b []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

func encodeHello(h Hello) []byte {
	b := make([]byte, abi.HelloBytes)
	binary.LittleEndian.PutUint64(b[abi.HelloMagicAt:], abi.ABIMagic)
	binary.LittleEndian.PutUint32(b[abi.HelloVersionAt:], abi.ABIVersion)
	binary.LittleEndian.PutUint32(b[abi.HelloFlagsAt:], uint32(h.Flags))
	binary.LittleEndian.PutUint32(b[abi.HelloAttemptAt:], h.Attempt)
	binary.LittleEndian.PutUint32(b[abi.HelloDeadlineAt:], h.Deadline)
	return b
}

func encodeReady(status uint32, errno unix.Errno) []byte {
	b := make([]byte, abi.ReadyBytes)
	binary.LittleEndian.PutUint64(b[abi.ReadyMagicAt:], abi.ABIMagic)
	binary.LittleEndian.PutUint32(b[abi.ReadyStatusAt:], status)
	binary.LittleEndian.PutUint32(b[abi.ReadyErrorAt:], uint32(errno))
	return b
}

// welcome receives the answer to hello; file is nil after a refusal.
func (c *client) welcome() (status uint32, size uint64, file *os.File) {
	c.t.Helper()
	b, oob := make([]byte, 256), make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := c.conn.ReadMsgUnix(b, oob)
	if err != nil || n != abi.WelcomeBytes {
		c.t.Fatalf("welcome of %d bytes, %v", n, err)
	}
	status = binary.LittleEndian.Uint32(b[abi.WelcomeStatusAt:])
	size = binary.LittleEndian.Uint64(b[abi.WelcomeTotalSizeAt:])
	if oobn == 0 {
		return status, size, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		c.t.Fatal(err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		c.t.Fatalf("descriptors %v, %v", fds, err)
	}
	return status, size, os.NewFile(uintptr(fds[0]), "memory file")
}

// join goes through the gate up to ready and returns the mapped memory.
func (c *client) join(h Hello) *dmtest.App {
	c.t.Helper()
	return c.joinAt(h, 0)
}

// joinAt is join for a DMLib that lies at an address.
func (c *client) joinAt(h Hello, entry uint64) *dmtest.App {
	c.t.Helper()
	c.send(encodeHello(h))
	status, size, file := c.welcome()
	if status != abi.WelcomeOK || file == nil {
		c.t.Fatalf("refused with status %d", status)
	}
	defer file.Close()
	app := dmtest.Map(c.t, file.Fd())
	if uint64(len(app.Data)) != size {
		c.t.Fatalf("memory file of %d bytes, welcome says %d", len(app.Data), size)
	}
	app.Ready(os.Getpid())
	*app.U64(abi.HeaderAttendEntryAt) = entry
	c.send(encodeReady(abi.ReadyOK, 0))
	return app
}

// finish waits for the gate to hang up and returns what it said before.
func (c *client) finish() []byte {
	c.t.Helper()
	b := make([]byte, 256)
	n, err := c.conn.Read(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatal("the gate does not hang up")
	}
	return b[:n]
}
