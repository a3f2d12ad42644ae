// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/rundir"
)

// mustMembers returns the members of a job, and the path of the socket where they join.
func mustMembers(t *testing.T) (m *members, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "join")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
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
	conn, err := net.Dial("unix", path)
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

// withoutDescriptors runs f while this process can open no file.
func withoutDescriptors(t *testing.T, f func()) {
	t.Helper()
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	if err == nil {
		err = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: limit.Max}) // poll(2) wants one
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}()
	f()
}

// Where descriptors are short for a moment, processes that join wait, and the others are
// followed on.
func TestJoinWithoutDescriptors(t *testing.T) {
	m, path := mustMembers(t)
	said := make(chan string, 1)
	m.log = slog.New(slog.NewTextHandler(lines(said), nil))
	m.alive.Add(1)
	mustJoin(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	withoutDescriptors(t, func() {
		go func() { served <- m.serve(ctx, func(*procid.Process) {}) }()
		select {
		case line := <-said:
			if !strings.Contains(line, "have to wait") {
				t.Error(line)
			}
		case err := <-served:
			t.Fatal(err)
		}
	})
	for line := range said {
		if strings.Contains(line, "is not followed") {
			break
		}
	}
	cancel()
	for {
		select {
		case <-said:
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
}

// A process that waits to be accepted has joined, whatever is short.
func TestPendingMemberWithoutDescriptors(t *testing.T) {
	m, path := mustMembers(t)
	mustJoin(t, path)
	withoutDescriptors(t, func() {
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
