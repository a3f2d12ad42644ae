// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package inject

import (
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// starved calls f with a program whose threads stop long after they were told to, for want
// of a processor, and that does what it would have done all the same.
func starved(t *testing.T, f func(*targets.Target)) {
	t.Helper()
	const pin = "taskset"
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	processor := 0
	for !allowed.IsSet(processor) {
		processor++
	}
	busy := exec.Command("chrt", "--fifo", "1", pin, "-c", fmt.Sprint(processor), "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = busy.Process.Kill() // it ends with the test
		_ = busy.Wait()
	}()
	program := targets.Program(t, "timeouts")
	target := targets.StartCommand(t, exec.Command(pin, "-c", fmt.Sprint(processor), program))
	f(target)
	if stat, err := procid.ReadStat(busy.Process.Pid); err != nil || stat.Zombie() {
		t.Errorf("nothing kept the processor: %+v, %v", stat, err)
	}
	target.Right(t)
	target.Finish(t)
}

func TestSearchOfTheStarved(t *testing.T) {
	starved(t, func(target *targets.Target) {
		options := ExecuteOptions{Suits: func(int64, uint64) bool { return false }, Anywhere: true, Patience: 200 * time.Millisecond}
		for range targets.Fewer(10) {
			if _, _, err := Execute(t.Context(), mustOpen(t, target.PID), constant(1), options); !errors.Is(err, ErrNoSafePoint) {
				t.Error(err)
			}
		}
	})
}

// TestRewriteOfTheStarved: a change of code that is not there, for which all threads are
// stopped.
func TestRewriteOfTheStarved(t *testing.T) {
	starved(t, func(target *targets.Target) {
		never, err := objfile.Resolve(target.PID, "timeouts", "target_never", objfile.Function)
		if err != nil {
			t.Fatal(err)
		}
		change := proc.Change{Address: never.Address, From: otherCode, To: codeOfValue}
		if _, err := Rewrite(t.Context(), mustOpen(t, target.PID), change); !errors.Is(err, ErrBusy) && !errors.Is(err, ErrUnsuited) {
			t.Error(err)
		}
	})
}
