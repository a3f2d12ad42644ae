// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// work is much more CPU time than these tests take beside it.
const work = 100 * time.Millisecond

// burn lets the calling goroutine, which has a thread of its own, work.
func burn() {
	for began := clock.Thread(); clock.Thread()-began < work; {
	}
}

func mustLook(t *testing.T, pid int, without ...string) Tree {
	t.Helper()
	tree, err := TreeOf(pid, without...)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// What a thread took is not lost when it ends.
func TestTreeKeepsThreadsThatHaveEnded(t *testing.T) {
	before := mustLook(t, os.Getpid())
	thread, tid := make(chan int), os.Getpid()
	for tid == os.Getpid() { // Go's first thread never ends
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			burn()
			thread <- unix.Gettid()
		}()
		tid = <-thread
	}
	patience.Until(t, "the end of the thread", func() bool {
		_, err := procid.ReadThreadStat(os.Getpid(), tid)
		return errors.Is(err, procid.ErrGone)
	})
	if more := mustLook(t, os.Getpid()).CPU - before.CPU; more < work {
		t.Errorf("%v more, want at least %v", more, work)
	}
}

// A child counts while it lives, and what it took when it has ended.
func TestTreeCountsChildren(t *testing.T) {
	const script = `sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done'; echo ready
read line; sleep 1000 & until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done; echo ready
read line; kill $!`
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	in, out, err := StartPiped(cmd)
	if err != nil {
		t.Fatal(err)
	}
	awaitReady := func() {
		t.Helper()
		if line, err := out.ReadString('\n'); err != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
	awaitReady()
	alone := mustLook(t, cmd.Process.Pid)
	if alone.Processes != 1 || alone.CPU < work/4 || alone.MB <= 0 {
		t.Errorf("after its child has ended: %+v", alone)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	awaitReady()
	if both := mustLook(t, cmd.Process.Pid); both.Processes != 2 || both.CPU < alone.CPU {
		t.Errorf("with a child: %+v, alone %+v", both, alone)
	}
	if one := mustLook(t, cmd.Process.Pid, "sleep"); one.Processes != 1 {
		t.Errorf("without the child: %+v", one)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if tree, err := TreeOf(cmd.Process.Pid); err == nil {
		t.Errorf("of a process that has ended: %+v", tree)
	}
}
