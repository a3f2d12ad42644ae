// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// startGuarded starts a program that has faults on purpose, by the library "guards".
func startGuarded(t *testing.T) *targets.Target {
	t.Helper()
	cmd := exec.Command(targets.Program(t, "plain"))
	cmd.Env = append(cmd.Environ(), "LD_PRELOAD="+targets.Program(t, "guards", "-shared", "-fPIC"))
	return targets.StartCommand(t, cmd)
}

// TestFaultOfTheBorrowedThread: the call ends, and the program still has its handler.
func TestFaultOfTheBorrowedThread(t *testing.T) {
	target := startGuarded(t)
	found, err := objfile.Resolve(target.PID, "guards", "guards_touch", objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	options := patiently(ExecuteOptions{Anywhere: true})
	if _, _, err := Execute(t.Context(), mustOpen(t, target.PID), Calling(found.Address), options); !errors.Is(err, ErrCall) {
		t.Errorf("a call that faults: %v, want %v", err, ErrCall)
	}
	target.Right(t)
	target.Finish(t)
}

// TestBetweenFaultAndHandler: a thread that has a fault is told of it by the kernel alone,
// with where it was, whatever it executes for us.
func TestBetweenFaultAndHandler(t *testing.T) {
	target := targets.StartProgram(t, "faults")
	process := mustOpen(t, target.PID)
	tids, err := procid.Threads(target.PID)
	if err != nil || len(tids) != 2 {
		t.Fatalf("threads %v, %v", tids, err)
	}
	for range targets.Fewer(300) {
		value, _, err := Execute(t.Context(), process, ownThread(), patiently(ExecuteOptions{Anywhere: true, Thread: tids[1]}))
		if err != nil || value != uint64(tids[1]) {
			t.Fatalf("%d, %v", value, err)
		}
	}
	target.Right(t)
	target.Finish(t)
}

// TestFaultOfTheHelper: the thread that loads DMLib has such faults, and goes on.
func TestFaultOfTheHelper(t *testing.T) {
	b := newBench(t)
	target := startGuarded(t)
	result := b.inject(t, target.PID)
	if result.Helper == 0 {
		t.Error("no thread was started")
	}
	GiveBack(t.Context(), result.Memory, nil)
	free(t, result)
	target.Right(t)
	target.Finish(t)
}
