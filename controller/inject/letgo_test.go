// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// callers are the threads of the target "timeouts" that wait in one call each.
func callers(t *testing.T, target *targets.Target) (tids []int) {
	t.Helper()
	all, err := procid.Threads(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range all {
		if tid != target.PID {
			tids = append(tids, tid)
		}
	}
	return tids
}

// attachTo enters a program and leaves it, unless no thread comes to where it can be
// borrowed.
func attachTo(t *testing.T, target *targets.Target, o Options) bool {
	t.Helper()
	result, err := Inject(t.Context(), mustOpen(t, target.PID), o)
	if errors.Is(err, ErrNoSafePoint) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	GiveBack(t.Context(), result.Memory, nil)
	free(t, result)
	return true
}

// TestAttachToCalls enters the program by each of its threads that can be borrowed.
func TestAttachToCalls(t *testing.T) {
	b := newBench(t)
	target := targets.StartProgram(t, "timeouts")
	brief := b.options
	brief.patience = 300 * time.Millisecond // of no use for threads in semtimedop
	entered := 0
	for _, tid := range callers(t, target) {
		brief.among = func(other int) bool { return other == tid }
		if attachTo(t, target, brief) {
			entered++
		}
	}
	b.options.among = func(other int) bool { return other != target.PID }
	if entered == 0 && !attachTo(t, target, b.options) {
		t.Error("the program is entered by none of its threads")
	}
	target.Right(t)
	target.Finish(t)
}

// TestExecuteAtAmongCalls: all threads are watched for one that comes to a function,
// while signals come that the program discards.
func TestExecuteAtAmongCalls(t *testing.T) {
	target := targets.StartProgram(t, "timeouts", "signals")
	for function, comes := range map[string]bool{"target_value": true, "target_never": false} {
		found, err := objfile.Resolve(target.PID, "timeouts", function, objfile.Function)
		if err != nil {
			t.Fatal(err)
		}
		options := ExecuteOptions{At: found.Address, Patience: 500 * time.Millisecond}
		if comes {
			options = patiently(options)
		}
		for range targets.Fewer(10) {
			_, _, err := Execute(t.Context(), mustOpen(t, target.PID), constant(1), options)
			if comes && err != nil || !comes && !errors.Is(err, ErrNoSafePoint) {
				t.Errorf("at %s: %v", function, err)
			}
		}
	}
	target.Right(t)
	target.Finish(t)
}

// TestSearchAmongCalls: all threads are looked at again and again, as the stdio
// tender does for a stream that it cannot flush.
func TestSearchAmongCalls(t *testing.T) {
	target := targets.StartProgram(t, "timeouts")
	options := ExecuteOptions{Suits: func(int64, uint64) bool { return false }, Patience: 200 * time.Millisecond}
	for _, anywhere := range []bool{false, true} {
		options.Anywhere = anywhere
		for range targets.Fewer(10) {
			if _, _, err := Execute(t.Context(), mustOpen(t, target.PID), constant(1), options); !errors.Is(err, ErrNoSafePoint) {
				t.Errorf("anywhere %v: %v", anywhere, err)
			}
		}
	}
	target.Right(t)
	target.Finish(t)
}

// TestBorrowFromCalls has each thread execute code where it stands.
func TestBorrowFromCalls(t *testing.T) {
	target := targets.StartProgram(t, "timeouts")
	for range targets.Fewer(10) {
		for _, tid := range callers(t, target) {
			value, _, err := Execute(t.Context(), mustOpen(t, target.PID), ownThread(), patiently(ExecuteOptions{Thread: tid, Anywhere: true}))
			if err != nil || value != uint64(tid) {
				t.Errorf("thread %d: %d, %v", tid, value, err)
			}
		}
	}
	target.Right(t)
	target.Finish(t)
}
