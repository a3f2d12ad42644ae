// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

const (
	// standstill is longer than attune run has leases of changes last.
	standstill = 5500 * time.Millisecond
	// looks is the time in which the controller looks at its leases more than once.
	looks = 2500 * time.Millisecond
)

// A program that is held up by a socket as it made it: the socket is changed from
// outside, while the program uses it. After the whole job was stopped for longer than the lease
// of the change, either the change is in force or the report says that it was undone.
func TestConnectionIsTuned(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	p, file := startTuned(t, nil, "sh", "-c", `echo $$ >"$1"; exec "$0" "$2"`, targets.Build(t, workloads+"tcp_requests.c"), pidFile, lasting)
	if err := p.await(t, kept("nagle", 1)); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(files.Read(t, pidFile))))
	if err != nil {
		t.Fatal(err)
	}
	if !sendsAtOnce(t, pid) {
		t.Fatal("no connection of the program sends at once, though the change was kept")
	}
	p.standStill(t, pid)
	inForce := true
	for end := time.Now().Add(looks); inForce && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		inForce = sendsAtOnce(t, pid)
	}
	p.end(t, syscall.SIGTERM)
	undone := func(c report.Change) bool { return c.Tunlet == "nagle" && c.Verdict == report.VerdictUndone }
	if r := mustReadReport(t, file); !inForce && !slices.ContainsFunc(r.Changes, undone) {
		t.Errorf("no connection sends at once any more, and the report has these changes: %+v", r.Changes)
	}
}

// standStill stops the command and the program that it has started for a while.
func (p *program) standStill(t *testing.T, program int) {
	t.Helper()
	group := -p.cmd.Process.Pid
	if err := unix.Kill(group, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the job's stop", func() bool { return stands(t, program) && stands(t, p.cmd.Process.Pid) })
	time.Sleep(standstill) // nothing happens that could be waited for
	if err := unix.Kill(group, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// stands says whether a process is stopped.
func stands(t *testing.T, pid int) bool {
	t.Helper()
	state, err := procid.ParseState(files.Read(t, "/proc/"+strconv.Itoa(pid)+"/stat"))
	if err != nil {
		t.Fatal(err)
	}
	return state == 'T'
}

// sendsAtOnce says whether a connection of a process has TCP_NODELAY.
func sendsAtOnce(t *testing.T, pid int) bool {
	t.Helper()
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(process)
	fds, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range fds {
		number, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdGetfd(process, number, 0)
		if err != nil {
			t.Fatal(err)
		}
		value, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
		unix.Close(fd)
		if err == nil && value == 1 { // else it is no connection
			return true
		}
	}
	return false
}
