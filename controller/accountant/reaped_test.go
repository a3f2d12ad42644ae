// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestReapedTruth: without root, of trees in which somebody waits for each
// process, sums are true to the byte; what is not known surely is called a bound.
func TestReapedTruth(t *testing.T) {
	options := Options{WithoutKernel: true, NoGroup: true, Wait: true}
	loader := mustLoad(t, options)
	if loader.Accuracy["cpu_seconds"] != account.Exact || loader.Accuracy["io.read_bytes"] != account.Exact {
		t.Errorf("of a single process: %v", loader.Accuracy)
	}
	for seed := range 4 {
		t.Run(fmt.Sprint("waited", seed), func(t *testing.T) {
			a, exit, want := mustGrow(t, options, seed, 60, "waited")
			if a.Processes.Total == nil {
				t.Skip("no process connector here: ", a.Missing)
			}
			checkBytes(t, a, loader, want)
			waited := time.Duration(exit.Rusage.Utime.Nano() + exit.Rusage.Stime.Nano()).Seconds()
			if *a.CPUSeconds != waited || a.Accuracy["cpu_seconds"] != account.Bound {
				t.Errorf("CPU time %v s (%s), wait4 says %v s", *a.CPUSeconds, a.Accuracy["cpu_seconds"], waited)
			}
		})
	}
}

// TestReapedOrphans: what lost its parent is reaped here, and what it took until
// its end is in the account; no process is missed. The bytes of one that ends as
// soon as it has lost its parent may not be seen, without root: the truth lies
// within the bound.
func TestReapedOrphans(t *testing.T) {
	options := Options{WithoutKernel: true, NoGroup: true, Wait: true}
	for seed := range 4 {
		a, _, want := mustGrow(t, options, seed, 60, "orphans")
		if a.Processes.Total == nil {
			t.Skip("no process connector here: ", a.Missing)
		}
		if *a.Processes.Total != want.processes || *a.Processes.Left != 0 {
			t.Errorf("%d processes, %d left; the program's own count is %d", *a.Processes.Total, *a.Processes.Left, want.processes)
		}
		if *a.IO.Written > want.written || a.Accuracy["io.written_bytes"] != account.Bound {
			t.Errorf("%d bytes written (%s), the program's own count is %d", *a.IO.Written, a.Accuracy["io.written_bytes"], want.written)
		}
	}
}

// TestReapedIsNeverNobody: a tree whose only process is another one at each moment is
// seen until its end, which is that of a pipe.
func TestReapedIsNeverNobody(t *testing.T) {
	r, err := newReaped(false, new(disk).helper)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}()
	lives, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer lives.Close()
	cmd := exec.Command(targets.Program(t, "hops"), "5000")
	cmd.ExtraFiles = []*os.File{held}
	if err := errors.Join(cmd.Start(), held.Close()); err != nil {
		t.Fatal(err)
	}
	r.begin(cmd.Process.Pid)
	for looks := 0; ; looks++ {
		n, err := r.look()
		if err != nil {
			t.Error(err)
		}
		if len(n.alive) > 0 {
			continue
		}
		if ready, err := unix.Poll([]unix.PollFd{{Fd: int32(lives.Fd()), Events: unix.POLLIN}}, 0); ready == 0 || err != nil {
			t.Errorf("nobody at look %d, and somebody has the pipe open, %v", looks, err)
		}
		break
	}
	if _, err := lives.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error("the pipe did not end: ", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	patience.Until(t, "the last one to be reaped", func() bool { return len(childrenOf(os.Getpid())) == 0 })
}

// TestWaitedForLate: a parent waits for the child first that computes longest. What the others
// took until their ends is told when they took it.
func TestWaitedForLate(t *testing.T) {
	late := targets.Build(t, "testdata/late.c", "-O2")
	for _, beside := range []bool{false, true} {
		a, _ := mustRun(t, Options{WithoutKernel: true, NoGroup: true, Beside: beside}, late, "1.2", "0.4", "0.4")
		if a.Processes.Total == nil {
			t.Skip("no process connector here: ", a.Missing)
		}
		// In a window of 100 ms, the clock ticks of each of three, of 10 ms, may come late.
		most := float64(runtime.NumCPU()) + 0.5
		if *a.CoresPeak > most || slices.ContainsFunc(a.History, func(m account.Moment) bool { return m.Cores > most }) {
			t.Errorf("beside %v: %v cores, want %v at most; %+v", beside, *a.CoresPeak, most, a.History)
		}
	}
}

// TestFirstThreadEnds: a process goes on without its first thread, and has a child then.
func TestFirstThreadEnds(t *testing.T) {
	ends := targets.Build(t, "testdata/first_ends.c", "-O2", "-pthread")
	for _, beside := range []bool{false, true} {
		options := Options{WithoutKernel: true, NoGroup: true, Beside: beside, freeTime: time.Hour} // it ends soon
		a, exit := mustRun(t, options, "sh", "-c", `"$0"; exit 5`, ends)
		if a.Processes.Total == nil {
			t.Skip("no process connector here: ", a.Missing)
		}
		if *a.Processes.Total != 3 || exit.Code != 5 {
			t.Errorf("beside %v: %d processes, want the shell, the program and its child; exit %+v", beside, *a.Processes.Total, exit)
		}
		if !slices.ContainsFunc(a.Tree, func(p account.Process) bool { return p.Name == "first_ends" && p.WallSeconds >= 0.3 }) {
			t.Errorf("beside %v: no program of 0.3 s: %+v", beside, a.Tree)
		}
	}
}

// TestManyThreadsEnd: processes of many threads that run one after the other, and end with all of
// them, are not there at one time.
func TestManyThreadsEnd(t *testing.T) {
	threads := targets.Build(t, "testdata/many_threads.c", "-O2", "-pthread")
	a, _ := mustRun(t, Options{WithoutKernel: true, NoGroup: true}, "sh", "-c", `for i in $(seq 100); do "$0"; done`, threads)
	if a.Processes.Total == nil {
		t.Skip("no process connector here: ", a.Missing)
	}
	// The shell, one of seq or the program, and one that has ended when the next one is forked.
	if *a.Processes.Total < 101 || *a.Processes.Peak > 3 {
		t.Errorf("%d processes, %d at one time", *a.Processes.Total, *a.Processes.Peak)
	}
}

// TestWorst: without root, of a process that was looked at there is what it took until then.
func TestWorst(t *testing.T) {
	a, _ := mustRun(t, Options{WithoutKernel: true, NoGroup: true}, "sh", "-c", "true; head -c 3000000000 /dev/zero | wc -c >/dev/null")
	if a.Processes.Total == nil {
		t.Skip("no process connector here: ", a.Missing)
	}
	for _, p := range a.Tree {
		if p.CPUSeconds != nil && p.Name == "head" && *p.CPUSeconds > 0 && *p.CPUSeconds <= *a.CPUSeconds && p.Memory.Resident != nil {
			return
		}
	}
	t.Errorf("nothing is known of head: %+v", a.Tree)
}

// TestNobodyWaits: a parent that ignores SIGCHLD keeps from everybody what its
// children took; the account does not say that it knows.
func TestNobodyWaits(t *testing.T) {
	a, _ := mustRun(t, Options{WithoutKernel: true, NoGroup: true}, "sh", "-c", `trap "" CHLD; head -c 1000000 /dev/zero >/dev/null`)
	if a.Accuracy["io.read_bytes"] != account.Bound || a.Missing["io.read_bytes"] == "" {
		t.Errorf("%d bytes read, %s: %v", *a.IO.Read, a.Accuracy["io.read_bytes"], a.Missing)
	}
}

// TestPeakWithoutConnector: where the kernel tells nobody of births, as in a container, the most
// processes that a look saw at one time are told, not those of the last look.
func TestPeakWithoutConnector(t *testing.T) {
	command := exec.Command("sh", "-c", "sleep 600 & sleep 600 & wait")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	r := &reaped{root: command.Process.Pid, beside: true, refuse: errors.New("no connector")}
	patience.Until(t, "the shell and its children to be seen", func() bool {
		n, err := r.look()
		return err == nil && len(n.alive) == 3
	})
	if err := syscall.Kill(-command.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // killed
	patience.Until(t, "all to be gone", func() bool {
		n, err := r.look()
		return err == nil && len(n.alive) == 0
	})
	a := &account.Account{Accuracy: map[string]account.Accuracy{}, Sources: map[string]string{}, Missing: map[string]string{}}
	n, _ := r.look()
	if r.fillProcesses(a, time.Now(), n); *a.Processes.Peak != 3 || a.Accuracy["processes.peak"] != account.Bound {
		t.Errorf("%d processes at one time (%s), want at least 3", *a.Processes.Peak, a.Accuracy["processes.peak"])
	}
}
