// SPDX-License-Identifier: Apache-2.0

package procid_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/cpulist"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/openfiles"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// startCat starts a program that lives until the returned function ends it.
func startCat(t *testing.T) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command("cat")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		stdin.Close()
		cmd.Wait()
	})
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

func mustOpen(t *testing.T, pid int) *procid.Process {
	t.Helper()
	p, err := procid.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestIdentity(t *testing.T) {
	self, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/exe", &st); err != nil {
		t.Fatal(err)
	}
	if self.PID != os.Getpid() || self.ExeInode != st.Ino || self.ExeDevice != uint64(st.Dev) {
		t.Errorf("identity %+v, executable %d:%d", self, st.Dev, st.Ino)
	}
	if len(self.BootID) != 36 || self.StartTicks == 0 {
		t.Errorf("identity %+v lacks boot id or start time", self)
	}
	pid, _ := startCat(t)
	other, err := procid.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	if self.SameProcess(other) || !other.SameProcess(other) {
		t.Error("SameProcess confuses two processes")
	}
}

func TestEndOfProcess(t *testing.T) {
	pid, end := startCat(t)
	p := mustOpen(t, pid)
	if !p.Alive() {
		t.Fatal("not alive after Open")
	}
	if _, ok := p.ExitStatus(); ok {
		t.Error("a living process has an exit status")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("wait with cancelled context: %v", err)
	}
	end()
	if err := p.Wait(t.Context()); err != nil {
		t.Errorf("wait: %v", err)
	}
	if p.Alive() {
		t.Error("alive after its end")
	}
	if err := p.Signal(unix.SIGTERM); !errors.Is(err, procid.ErrGone) {
		t.Errorf("signal after the end: %v", err)
	}
	if _, err := procid.Open(pid); !errors.Is(err, procid.ErrGone) {
		t.Errorf("open after the end: %v", err)
	}
}

func TestZombieIsGoneAndTellsItsStatus(t *testing.T) {
	cmd := exec.Command("sh", "-c", "read line; exit 7")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := mustOpen(t, cmd.Process.Pid)
	stdin.Close()
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := procid.Open(cmd.Process.Pid); !errors.Is(err, procid.ErrGone) {
		t.Errorf("open of a zombie: %v", err)
	}
	status, ok := p.ExitStatus()
	if !ok || unix.WaitStatus(status).ExitStatus() != 7 {
		t.Errorf("exit status %#x, %v, want code 7", status, ok)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the process was reaped by somebody else")
	}
}

func TestSignalReachesProcess(t *testing.T) {
	pid, _ := startCat(t)
	p := mustOpen(t, pid)
	if err := p.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, ok := p.ExitStatus(); !ok || unix.WaitStatus(status).Signal() != unix.SIGKILL {
		t.Errorf("exit status %#x, %v, want SIGKILL", status, ok)
	}
}

func TestCloseReleasesWaiters(t *testing.T) {
	pid, _ := startCat(t)
	p := mustOpen(t, pid)
	results := make(chan error, 3)
	for range cap(results) {
		go func() { results <- p.Wait(context.Background()) }()
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for range cap(results) {
		if err := patience.Receive(t, "the end of a wait", results); !errors.Is(err, os.ErrClosed) {
			t.Errorf("wait across Close: %v", err)
		}
	}
	if p.Alive() {
		t.Error("alive after Close")
	}
}

// Where no descriptor is free, whoever waits for a process hears of its end all the same.
func TestWaitWithoutDescriptors(t *testing.T) {
	pid, end := startCat(t)
	ends, closed := mustOpen(t, pid), mustOpen(t, pid)
	begun, cancel := context.WithCancel(t.Context())
	cancel()
	openfiles.Limit(t, 0, func() {
		for _, p := range []*procid.Process{ends, closed} {
			if err := p.Wait(begun); !errors.Is(err, context.Canceled) {
				t.Errorf("wait for a process that runs: %v", err)
			}
		}
	})
	if err := closed.Close(); err != nil {
		t.Error(err)
	}
	if err := closed.Wait(patience.Context(t)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("wait after Close: %v", err)
	}
	end()
	if err := ends.Wait(patience.Context(t)); err != nil {
		t.Errorf("wait for a process that has ended: %v", err)
	}
}

func TestOpenKeepsNoDescriptor(t *testing.T) {
	pid, end := startCat(t)
	cycle := func() {
		p := mustOpen(t, pid)
		p.Close()
	}
	cycle()
	before := openfiles.Count(t)
	for range 50 {
		cycle()
	}
	end()
	for range 50 {
		if p, err := procid.Open(pid); err == nil {
			p.Close()
		}
	}
	// The pipe to cat is closed meanwhile, so there may be fewer.
	if after := openfiles.Count(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func TestCPUsAllowed(t *testing.T) {
	cpu := firstAllowedCPU(t)
	shell := targets.StartCommand(t, exec.Command("taskset", "-c", cpu, "sh", "-c", "echo ready; read line"))
	if n, err := procid.CPUsAllowed(shell.PID); err != nil || n != 1 {
		t.Errorf("%d CPUs, %v, want 1", n, err)
	}
	if cpus, err := procid.Affinity(shell.PID); err != nil || cpulist.Format(cpus) != cpu {
		t.Errorf("CPUs %v, %v, want %s", cpus, err, cpu)
	}
	if _, err := procid.CPUsAllowed(1 << 30); !errors.Is(err, procid.ErrGone) {
		t.Errorf("affinity of no process: %v", err)
	}
}

func firstAllowedCPU(t *testing.T) string {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			return strconv.Itoa(cpu)
		}
	}
	t.Fatal("no CPU allowed")
	return ""
}

// Hold takes the process that is meant, and nobody else who has its pid.
func TestHold(t *testing.T) {
	self, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	held, err := procid.Hold(self)
	if err != nil {
		t.Fatal(err)
	}
	if !held.Identity().SameProcess(self) {
		t.Errorf("holds %+v, want %+v", held.Identity(), self)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	before := self
	before.StartTicks--
	if held, err := procid.Hold(before); !errors.Is(err, procid.ErrGone) {
		t.Errorf("holds %v of a process that had the pid before: %v", held, err)
	}
}

// The way up from this process leads by its parent to process 1, as a rule, and 0.
func TestAncestors(t *testing.T) {
	all := slices.Collect(procid.Ancestors(os.Getpid()))
	if len(all) == 0 || all[0] != os.Getppid() || all[len(all)-1] != 0 {
		t.Errorf("ancestors %v, want them from %d to 0", all, os.Getppid())
	}
	for range procid.Ancestors(os.Getpid()) {
		break // must not go on
	}
	if got := slices.Collect(procid.Ancestors(1 << 30)); len(got) != 0 {
		t.Errorf("ancestors %v of no process", got)
	}
}
