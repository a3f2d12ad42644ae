// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/rundir"
)

// Who has joined is seen however late it is: a job whose processes wait to be
// accepted has not ended.
func TestPendingMember(t *testing.T) {
	path := filepath.Join(t.TempDir(), "join")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := listener.File()
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMembers(file, rundir.Job{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.close)
	pending := func() bool {
		if err := m.listener.SetDeadline(time.Unix(1, 0)); err != nil { // has passed
			t.Fatal(err)
		}
		return m.acceptPending(t.Context(), func(*procid.Process) {}, func() {})
	}
	if pending() {
		t.Error("a process has joined before there was one")
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil { // it has hung up, too
		t.Fatal(err)
	}
	if !pending() {
		t.Error("a process that has joined is not seen")
	}
	if pending() {
		t.Error("a process is seen twice")
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}
