// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package accountant

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/inherit"
	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestKernelTruth: of random trees with threads, vfork, clone3 and daemons, the
// account says to the byte and the call what the processes say themselves.
func TestKernelTruth(t *testing.T) {
	loader := mustLoad(t, Options{})
	for seed := range 8 {
		for _, how := range []string{"waited", "orphans"} {
			t.Run(fmt.Sprint(how, seed), func(t *testing.T) {
				a, exit, want := mustGrow(t, Options{Wait: true}, seed, 60, how)
				checkBytes(t, a, loader, want)
				if *a.Processes.Left != 0 || uint64(len(a.Tree)) != want.processes {
					t.Errorf("%d live on, %d are in the tree, of %d", *a.Processes.Left, len(a.Tree), want.processes)
				}
				var sum account.Process
				sum.CPUSeconds = new(0.0)
				for _, p := range a.Tree {
					*sum.CPUSeconds += *p.CPUSeconds
				}
				if off := *sum.CPUSeconds - *a.CPUSeconds; off > 1e-6 || off < -1e-6 {
					t.Errorf("CPU time %v s, of all processes %v s", *a.CPUSeconds, *sum.CPUSeconds)
				}
				if a.Accuracy["cpu_seconds"] != account.Exact || a.Accuracy["io.read_bytes"] != account.Exact {
					t.Errorf("accuracy %v", a.Accuracy)
				}
				waited := time.Duration(exit.Rusage.Utime.Nano() + exit.Rusage.Stime.Nano()).Seconds()
				// It has not what processes take after their parents have been told of their end.
				after := 5e-4 * float64(want.processes)
				if off := *a.CPUSeconds - waited; how == "waited" && (off > 1e-3+after || off < -1e-3) {
					t.Errorf("CPU time %v s, wait4 says %v s", *a.CPUSeconds, waited)
				}
			})
		}
	}
}

// TestForkstorm: none of 500 short programs is missed, and one of them is alive at
// a time beside the shell.
func TestForkstorm(t *testing.T) {
	a, _ := mustRun(t, Options{}, "sh", "-c", `i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i + 1)); done`)
	if *a.Processes.Total != 501 || *a.Processes.Peak != 2 || len(a.Tree) != 501 {
		t.Errorf("%d processes, %d at one time, %d in the tree; want 501, 2, 501", *a.Processes.Total, *a.Processes.Peak, len(a.Tree))
	}
}

// TestSiblings: what the command clones as a child of its own parent, and ends before it, is its own, and what was
// tried before it is not, in its limits neither.
func TestSiblings(t *testing.T) {
	program := targets.BuildText(t, "sibling", `
		#define _GNU_SOURCE
		#include <fcntl.h>
		#include <sched.h>
		#include <signal.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		int main(void) {
			static char block[1000000];
			int end[2], zero = open("/dev/zero", O_RDONLY);
			if (zero < 0 || pipe(end))
				return 1;
			switch (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0)) {
			case -1:
				return 2;
			case 0:
				_exit(read(zero, block, sizeof(block)) != sizeof(block));
			}
			close(end[1]);
			return read(end[0], block, 1) != 0; /* its end */
		}`)
	notExecutable := t.TempDir()
	files.Write(t, filepath.Join(notExecutable, "sibling"), "#!/nowhere/at/all\n", 0o755)
	t.Setenv("PATH", notExecutable+":"+filepath.Dir(program))
	a, exit := mustRun(t, Options{Limits: []Limit{{Field: "processes.total", Max: 2}}}, "sibling")
	var status unix.WaitStatus
	if _, err := unix.Wait4(-1, &status, 0, nil); err != nil || status.ExitStatus() != 0 || exit.Code != 0 {
		t.Fatalf("the sibling ended with %d (%v), the command with %+v", status.ExitStatus(), err, exit)
	}
	if *a.Processes.Total != 2 || len(a.Tree) != 2 || *a.IO.Read < 1_000_000 || a.Accuracy["io.read_bytes"] != account.Exact {
		t.Errorf("%d processes, %d in the tree, %d bytes read (%s)", *a.Processes.Total, len(a.Tree), *a.IO.Read, a.Accuracy["io.read_bytes"])
	}
}

// TestMemoryOfTheTree: the peak is of all at one time, not a sum of peaks, and
// shared pages count once where that is said. No look says too much; a look when all is
// filled comes in one of some runs, however busy the machine is.
func TestMemoryOfTheTree(t *testing.T) {
	const megabytes = 64
	shapes := targets.Build(t, "testdata/shapes.c", "-O0") // memory that is only written would be optimised away
	for shape, want := range map[string]struct{ resident, proportional uint64 }{
		"one":      {megabytes, megabytes},
		"turns":    {megabytes, megabytes},
		"together": {4 * megabytes, 4 * megabytes},
		"shared":   {5 * megabytes, megabytes},
	} {
		t.Run(shape, func(t *testing.T) {
			var a *account.Account
			reached := func(name string, got *uint64, want uint64) bool {
				t.Helper()
				if got == nil { // less than the most was asked
					return false
				}
				if *got > (want+12)*1e6 { // programs and libraries are a few MB each
					t.Fatalf("%s: %d bytes, want %d MB", name, *got, want)
				}
				return *got >= want*1e6
			}
			patience.Until(t, "a look when all is filled", func() bool {
				a, _ = mustRun(t, Options{}, shapes, fmt.Sprint(megabytes), shape)
				if a.Memory.Cgroup != nil && !reached("control group", a.Memory.Cgroup, want.proportional) {
					t.Fatalf("the control group's peak, which needs no look, is %d bytes", *a.Memory.Cgroup)
				}
				resident := reached("resident", a.Memory.Resident, want.resident)
				return reached("proportional", a.Memory.Proportional, want.proportional) && resident
			})
		})
	}
}

// TestLeftBehind: what outlives the command is said, with what it took so far.
func TestLeftBehind(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	a, _ := mustRun(t, Options{}, "sh", "-c", `(setsid sh -c 'head -c 1000000 /dev/zero >/dev/null; echo $$ >"$0"; echo; exec sleep 1000' "$0" &) | read line`, pid)
	left, err := strconv.Atoi(strings.TrimSpace(string(files.Read(t, pid))))
	if err = errors.Join(err, unix.Kill(left, unix.SIGKILL)); err != nil {
		t.Error(err)
	}
	if *a.Processes.Left == 0 || *a.IO.Read < 1e6 || a.Accuracy["io.read_bytes"] != account.Sampled {
		t.Errorf("%d live on, %d bytes were read (%s)", *a.Processes.Left, *a.IO.Read, a.Accuracy["io.read_bytes"])
	}
}

// TestHardLimitsWithRoot: the same with the kernel's account and a control group.
func TestHardLimitsWithRoot(t *testing.T) { hardLimits(t, Options{}) }

// TestHeldMemory: the kernel keeps a control group near its limit, however fast it is
// filled between two looks.
func TestHeldMemory(t *testing.T) {
	const most = 32 << 20
	options := Options{Limits: []Limit{{Field: cgroupField, Max: most}}}
	if a, err := New(options); errors.Is(err, ErrNotLimitable) {
		if _, missing := os.Stat("/sys/fs/cgroup/memory/cgroup.procs"); missing == nil {
			t.Error("version 1 serves every group, and yet:", err)
		}
		return // version 2 may serve none below ours: that it is said is the promise
	} else if err == nil {
		_ = a.Close()
	}
	a, _ := mustRun(t, options, "sh", "-c", "head -c 200000000 /dev/zero | tail -n 1 >/dev/null; exit 7")
	if a.Exit.Type != account.ExitLimits || len(a.Exit.Limits) != 1 || *a.Memory.Cgroup > most*21/20 {
		t.Errorf("%d bytes at most, of %d; the account says %+v", *a.Memory.Cgroup, most, a.Exit)
	}
}

// TestMemoryThatIsNotHeld: a command that the kernel does not let begin in the group with its limit is not started.
func TestMemoryThatIsNotHeld(t *testing.T) {
	a, err := New(Options{Limits: []Limit{{Field: cgroupField, Max: 32 << 20}}})
	if errors.Is(err, ErrNotLimitable) {
		return // no memory controller here: that it is said is the promise
	} else if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}()
	if !a.group.required() {
		return // of version 1: the thread enters it that starts the command
	}
	// No process may be in a group that gives a controller on.
	control := fmt.Sprintf("/proc/self/fd/%d/cgroup.subtree_control", a.group.fd())
	files.Write(t, control, "+memory", 0)
	command := launch.Command{Args: []string{"true"}, Env: os.Environ(), Signals: launch.Catch(inherit.State{})}
	a.Prepare(&command)
	child, err := launch.Start(t.Context(), command)
	if err == nil {
		t.Fatalf("it was started, and ended with %+v", child.Wait())
	}
	if !errors.Is(err, unix.EBUSY) {
		t.Errorf("error %v", err)
	}
}

// TestStartWithoutAccount: a command is started where it cannot be accounted for, and the
// account says why it lacks what it lacks; one with a limit is not.
func TestStartWithoutAccount(t *testing.T) {
	for _, limited := range []bool{false, true} {
		k, _, err := newKernel(false, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.close(); err != nil {
			t.Fatal(err)
		}
		k.limited = limited
		started := false
		err = k.fork(func() error { started = true; return nil })
		if started == limited || (err != nil) != limited || k.err == nil != limited {
			t.Errorf("limited %v: started %v, error %v, remembered %v", limited, started, err, k.err)
		}
	}
}
