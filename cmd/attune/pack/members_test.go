// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/rundir"
	"github.com/attune-hpc/attune/internal/testing/openfiles"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// mustMembers returns the members of a job, and the path of the socket where they join.
func mustMembers(t *testing.T) (m *members, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "join")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	file, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	if m, err = newMembers(file, rundir.Job{Path: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	return m, path
}

// mustJoin connects and hangs up, which is seen and not followed.
func mustJoin(t *testing.T, path string) {
	t.Helper()
	conn, err := net.Dial("unixpacket", path)
	if err == nil {
		err = conn.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Who has joined is seen however late it is: a job whose processes wait to be
// accepted has not ended.
func TestPendingMember(t *testing.T) {
	m, path := mustMembers(t)
	pending := func() bool {
		if err := m.listener.SetDeadline(time.Unix(1, 0)); err != nil { // has passed
			t.Fatal(err)
		}
		return m.acceptPending(t.Context(), func(*procid.Process) {}, func() {})
	}
	if pending() {
		t.Error("a process has joined before there was one")
	}
	mustJoin(t, path)
	if !pending() {
		t.Error("a process that has joined is not seen")
	}
	if pending() {
		t.Error("a process is seen twice")
	}
}

// Where descriptors are short for a moment, processes that join wait, and the others are
// followed on.
func TestJoinWithoutDescriptors(t *testing.T) {
	m, path := mustMembers(t)
	said := make(chan string, 1)
	m.log = slog.New(slog.NewTextHandler(lines(said), nil))
	m.alive.Add(1)
	mustJoin(t, path) // and says nothing, as who looks whether the job is there
	mustJoinAsThis(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	served, joined := make(chan error, 1), make(chan *procid.Process, 1)
	openfiles.Limit(t, 0, func() {
		go func() { served <- m.serve(ctx, func(p *procid.Process) { joined <- p }) }()
		select {
		case line := <-said:
			if !strings.Contains(line, "have to wait") {
				t.Error(line)
			}
		case err := <-served:
			t.Fatal(err)
		}
	})
	patience.Receive(t, "who has joined", joined)
	cancel()
	if err := patience.Receive(t, "the end", served); err != nil {
		t.Error(err)
	}
	select {
	case line := <-said:
		t.Error(line)
	default:
	}
}

// mustJoinAsThis joins as DMLib does, for this process.
func mustJoinAsThis(t *testing.T, path string) {
	t.Helper()
	self, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	message := make([]byte, joinSize)
	copy(message, joinMagic)
	binary.LittleEndian.PutUint32(message[len(joinMagic):], joinVersion)
	binary.LittleEndian.PutUint64(message[joinStart:], self.StartTicks)
	pidfd, err := unix.PidfdOpen(self.PID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, _, err := conn.WriteMsgUnix(message, unix.UnixRights(pidfd), nil); err != nil {
		t.Fatal(err)
	}
}

// A process that is accepted with the last descriptors waits, too, and is followed when
// there are some again.
func TestJoinWithLastDescriptors(t *testing.T) {
	for free := 1; free <= 3; free++ {
		m, path := mustMembers(t)
		said := make(chan string, 1)
		m.log = slog.New(slog.NewTextHandler(lines(said), nil))
		mustJoinAsThis(t, path)
		ctx, cancel := context.WithCancel(t.Context())
		served, joined := make(chan error, 1), make(chan *procid.Process, 1)
		m.alive.Add(1)
		openfiles.Limit(t, free, func() {
			go func() { served <- m.serve(ctx, func(p *procid.Process) { joined <- p }) }()
			if line := patience.Receive(t, "word of who waits", said); !strings.Contains(line, "have to wait") {
				t.Errorf("%d free: %s", free, line)
			}
		})
		if p := patience.Receive(t, "who has joined", joined); p.PID() != os.Getpid() {
			t.Errorf("%d free: pid %d has joined", free, p.PID())
		}
		cancel()
		if err := patience.Receive(t, "the end", served); err != nil {
			t.Errorf("%d free: %v", free, err)
		}
	}
}

// A process that waits to be accepted has joined, whatever is short.
func TestPendingMemberWithoutDescriptors(t *testing.T) {
	m, path := mustMembers(t)
	mustJoin(t, path)
	openfiles.Limit(t, 0, func() {
		if !m.acceptPending(t.Context(), func(*procid.Process) {}, func() {}) {
			t.Error("a process that has joined is not seen")
		}
	})
}

// lines is a writer that sends what is written.
type lines chan<- string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}
