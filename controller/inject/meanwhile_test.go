// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestEndWhileEntering: the program ends somewhere in the middle.
func TestEndWhileEntering(t *testing.T) {
	program := targets.Program(t, "plain")
	b := newBench(t)
	for i := range 20 {
		h := targets.StartCommand(t, exec.Command(program))
		process := mustOpen(t, h.PID)
		go func() {
			time.Sleep(time.Duration(i) * 2 * time.Millisecond)
			_ = h.Say("end") // it may have ended
		}()
		for {
			result, err := Inject(t.Context(), process, b.options)
			if err == nil {
				free(t, result)
				continue
			}
			if !errors.Is(err, ErrInterrupted) && !errors.Is(err, procid.ErrGone) && !errors.Is(err, ErrUnsuited) {
				t.Errorf("entering a program that ends: %v", err)
			}
			break
		}
		h.Finished(t)
	}
}

// TestExecWhileEntering: the program becomes another one in the middle.
func TestExecWhileEntering(t *testing.T) {
	program := targets.Program(t, "plain")
	b := newBench(t)
	b.options.patience = 200 * time.Millisecond // a search in what is replaced is in vain
	h := targets.StartCommand(t, exec.Command(program))
	for i := range 6 {
		become := make(chan error, 1)
		go func() {
			time.Sleep(time.Duration(i) * 2 * time.Millisecond)
			become <- h.Say("exec")
		}()
		for range 3 {
			process, err := proc.Open(h.PID)
			if err != nil {
				continue // it is just becoming the other one
			}
			result, err := Inject(t.Context(), process, b.options)
			if err == nil {
				free(t, result)
			} else if errors.Is(err, ErrTimeout) || errors.Is(err, procid.ErrGone) {
				t.Fatalf("entering a program that executes another: %v", err)
			}
		}
		if err := <-become; err != nil {
			t.Fatal(err)
		}
		h.Expect(t, "ready")
		h.Right(t)
	}
	h.Finish(t)
}

// TestStopWhileEntering: the program is stopped and continued by others.
func TestStopWhileEntering(t *testing.T) {
	b := newBench(t)
	h := targets.StartProgram(t, "plain")
	process := mustOpen(t, h.PID)
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			_ = unix.Kill(h.PID, unix.SIGSTOP)
			time.Sleep(3 * time.Millisecond)
			_ = unix.Kill(h.PID, unix.SIGCONT)
			select {
			case <-over:
				return
			case <-time.After(3 * time.Millisecond):
			}
		}
	}()
	entered := 0
	for until := time.Now().Add(time.Minute); entered < 5 && time.Now().Before(until); {
		result, err := Inject(t.Context(), process, b.options)
		if err == nil {
			entered++
			free(t, result)
		} else if !errors.Is(err, ErrUnsuited) {
			t.Fatal(err)
		}
	}
	close(over)
	<-ended
	if entered == 0 {
		t.Error("never entered between two stops")
	}
	h.Right(t)
	h.Finish(t)
}

// TestOtherTracer: a debugger has the program.
func TestOtherTracer(t *testing.T) {
	b := newBench(t)
	h := targets.StartProgram(t, "plain")
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // ends with the goroutine, and tracing with it
		if err := unix.PtraceSeize(h.PID); err != nil {
			done <- err
			return
		}
		_, err := Inject(t.Context(), mustOpen(t, h.PID), b.options)
		done <- err
	}()
	err := <-done
	if !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())+" traces it") {
		t.Errorf("error %v, want one that names the tracer", err)
	}
	h.Right(t)
	h.Finish(t)
}

// startVfork starts a program that has a child by vfork(2), which lives until it is told
// to end. With "alone" the program has no other thread.
func startVfork(t *testing.T, how ...string) (h *targets.Target, child int, end func()) {
	t.Helper()
	life := strconv.FormatInt((2 * patience.Limit).Milliseconds(), 10)
	h = targets.StartProgram(t, "spawns", append([]string{life}, how...)...)
	child = childOf(t, h.PID)
	end = sync.OnceFunc(func() { _ = unix.Kill(child, unix.SIGKILL) }) // it does nothing else
	t.Cleanup(end)
	return h, child, end
}

// TestVforkChild: it must not be entered, its memory is its parent's. The parent
// is entered meanwhile, by another of its threads.
func TestVforkChild(t *testing.T) {
	b := newBench(t)
	h, child, end := startVfork(t)
	if _, err := Inject(t.Context(), mustOpen(t, child), b.options); !errors.Is(err, ErrUnsuited) || !strings.Contains(err.Error(), "vfork") {
		t.Errorf("error %v, want a refusal for vfork", err)
	}
	b.enterAndLeave(t, h.PID)
	end()
	h.Right(t)
	h.Finish(t)
}

// TestVforkParent: its only thread waits for its child, and the kernel stops it
// for nobody. It is given up, and nothing of that is left when it goes on.
func TestVforkParent(t *testing.T) {
	b := newBench(t)
	h, _, end := startVfork(t, "alone")
	brief := b.options
	brief.patience = 200 * time.Millisecond
	if _, err := Inject(t.Context(), mustOpen(t, h.PID), brief); !errors.Is(err, ErrNoSafePoint) {
		t.Errorf("error %v, want %v", err, ErrNoSafePoint)
	}
	end()
	h.Right(t)
	b.enterAndLeave(t, h.PID)
	h.Right(t)
	h.Finish(t)
}

// childOf waits for a child of any thread of a process.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	for {
		for _, tid := range tasks(t, pid) {
			content, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, tid))
			if err != nil {
				t.Skip("the kernel does not tell of children:", err)
			}
			if fields := strings.Fields(string(content)); len(fields) > 0 {
				child, err := strconv.Atoi(fields[0])
				if err != nil {
					t.Fatal(err)
				}
				return child
			}
		}
	}
}

func tasks(t *testing.T, pid int) (tids []int) {
	t.Helper()
	tids, err := procid.Threads(pid)
	if err != nil {
		t.Fatal(err)
	}
	return tids
}
