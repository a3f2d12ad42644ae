// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestStrangers: what a child from before the command has started, before or since, is none of the
// command's when it loses its parent, and is waited for when it has ended.
func TestStrangers(t *testing.T) {
	shell := targets.Launch(t, exec.Command("sh", "-c", `for i in 1 2; do sleep 1000 >/dev/null & echo $!; read line; done`))
	started := func() int {
		t.Helper()
		pid, err := strconv.Atoi(shell.Line(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) }) // it may have ended
		return pid
	}
	lost := []int{started()}
	r, err := newReaped(false, new(disk).helper)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}()
	command := exec.Command("sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = command.Process.Kill()
		_ = command.Wait() // killed
	}()
	r.begin(command.Process.Pid)
	if err := shell.Say(""); err != nil {
		t.Fatal(err)
	}
	lost = append(lost, started())
	for _, pid := range lost {
		patience.Until(t, "what a stranger has started to be known", func() bool {
			stat, err := procid.ReadStat(pid)
			return err == nil && r.reaper.strange(stat)
		})
	}
	_ = shell.End(t) // with the code of read, which found the end
	for _, pid := range lost {
		patience.Until(t, "it to lose its parent", func() bool {
			stat, err := procid.ReadStat(pid)
			return err == nil && stat.ParentPID == os.Getpid()
		})
	}
	r.reaper.reap()
	if n, err := r.look(); err != nil || len(n.alive) != 1 || n.alive[0].pid != command.Process.Pid {
		t.Errorf("alive are %+v, %v; want the command alone, %d", n.alive, err, command.Process.Pid)
	}
	for _, pid := range lost {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
		patience.Until(t, "it to be waited for", func() bool { return unix.Kill(pid, 0) == unix.ESRCH })
	}
	if done := r.reaper.done(); done != (taken{}) {
		t.Errorf("the strangers took %+v, which is in the account", done)
	}
}

// TestStrangersOnABusyMachine: a look at the strangers that waits for a processor is not followed by a
// longer pause than another one.
func TestStrangersOnABusyMachine(t *testing.T) {
	targets.Launch(t, exec.Command("sleep", "1000"))
	var one, all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	pin := func() {
		runtime.LockOSThread() // for good: the thread ends with its goroutine
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Error(err)
		}
	}
	var done atomic.Bool
	var both sync.WaitGroup
	both.Go(func() {
		for pin(); !done.Load(); {
		}
	})
	both.Go(func() {
		defer done.Store(true)
		pin()
		s := newStrangers()
		for first := clock.Thread(); clock.Thread()-first < 40*time.Millisecond; {
			s.next = time.Time{}
			worked := clock.Thread()
			s.follow()
			worked = clock.Thread() - worked
			if pause := time.Until(s.next); pause > strangersShare*worked {
				t.Errorf("a pause of %v after %v of work", pause, worked)
				return
			}
		}
	})
	both.Wait()
}
