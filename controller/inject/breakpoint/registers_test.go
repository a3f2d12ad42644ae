// SPDX-License-Identifier: Apache-2.0

package breakpoint

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// A child of the controller has all of its descriptors from its fork to its exec.
// A breakpoint is away nonetheless when it has been closed: a thread that hits one
// and is not traced is killed.
func TestBreakpointThatAForkHolds(t *testing.T) {
	target := targets.StartProgram(t, "visits", "1")
	at, err := objfile.Resolve(target.PID, "visits", "visited", objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	signal := func(s unix.Signal) {
		t.Helper()
		if err := unix.Kill(target.PID, s); err != nil {
			t.Fatal(err)
		}
	}
	signal(unix.SIGSTOP)
	tids, err := procid.Threads(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range tids {
		waitStopped(t, target.PID, tid)
		b := registers{at.Address, make(map[int]int)}
		if err := b.Set(tid); err != nil {
			t.Fatal(err)
		}
		held, err := unix.Dup(b.events[tid])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(held) })
		b.Disable()
	}
	signal(unix.SIGCONT)
	if got := target.Ask(t, "check"); got != "wrong 0, all go on" {
		t.Error(got)
	}
}

func waitStopped(t *testing.T, pid, tid int) {
	t.Helper()
	patience.Until(t, fmt.Sprintf("thread %d to stop", tid), func() bool {
		s, err := procid.ReadThread(pid, tid)
		return err == nil && s.State == 'T'
	})
}
