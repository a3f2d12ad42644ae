// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// transferring are the threads of the target "transfers" that wait in the middle of a call.
func transferring(t *testing.T, target *targets.Target) (tids []int) {
	t.Helper()
	patience.Until(t, "its threads to wait", func() bool {
		tids = nil
		return !slices.ContainsFunc(tasks(t, target.PID), func(tid int) bool {
			call, ok := tracer.CurrentCall(target.PID, tid)
			if ok && call.Number != unix.SYS_FUTEX && tid != target.PID {
				tids = append(tids, tid)
			}
			return !ok
		})
	})
	return tids
}

// TestTransfersAreWhole: a system call that has done a part of its work is not cut short,
// whatever threads are stopped for. A thread that waits with nothing done is stopped.
func TestTransfersAreWhole(t *testing.T) {
	const brief = 200 * time.Millisecond
	idle := []string{"idle"}
	execute := func(want error, o ExecuteOptions) func(*testing.T, *targets.Target, []int) {
		return func(t *testing.T, target *targets.Target, tids []int) {
			o.Patience = brief
			if o.At != 0 {
				never, err := objfile.Resolve(target.PID, "transfers", "target_never", objfile.Function)
				if err != nil {
					t.Fatal(err)
				}
				o.At = never.Address
			}
			if o.Thread != 0 {
				o.Thread = tids[0]
			}
			if want == nil {
				o = patiently(o)
			}
			if _, _, err := Execute(t.Context(), mustOpen(t, target.PID), constant(1), o); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
	}
	rewrite := func(want error) func(*testing.T, *targets.Target, []int) {
		return func(t *testing.T, target *targets.Target, _ []int) {
			never, err := objfile.Resolve(target.PID, "transfers", "target_never", objfile.Function)
			if err != nil {
				t.Fatal(err)
			}
			change := proc.Change{Address: never.Address, From: otherCode[:1], To: codeOfValue[:1]} // it is other code
			result := (&rewritten{target, mustOpen(t, target.PID)}).unlessBusy(t, want, change)
			if errors.Is(want, ErrBusy) && result.Tries != 0 {
				t.Errorf("all threads were to be stopped %d times", result.Tries)
			}
		}
	}
	unsuited := func(int64, uint64) bool { return false }
	for name, row := range map[string]struct {
		calls []string // of the target
		stop  func(*testing.T, *targets.Target, []int)
	}{
		"search":             {nil, execute(ErrNoSafePoint, ExecuteOptions{Suits: unsuited})},
		"search, anywhere":   {nil, execute(ErrNoSafePoint, ExecuteOptions{Suits: unsuited, Anywhere: true})},
		"a thread is wanted": {nil, execute(ErrNoSafePoint, ExecuteOptions{Anywhere: true, Thread: 1})},
		"watch":              {nil, execute(ErrNoSafePoint, ExecuteOptions{At: 1})},
		"attach": {nil, func(t *testing.T, target *targets.Target, tids []int) {
			b := newBench(t)
			b.options.patience = brief
			b.options.among = func(tid int) bool { return slices.Contains(tids, tid) }
			if _, err := Inject(t.Context(), mustOpen(t, target.PID), b.options); !errors.Is(err, ErrNoSafePoint) {
				t.Errorf("got %v, want %v", err, ErrNoSafePoint)
			}
		}},
		"rewrite":                             {nil, rewrite(ErrBusy)},
		"a thread is wanted, nothing is done": {idle, execute(nil, ExecuteOptions{Anywhere: true, Thread: 1})},
		"rewrite, nothing is done":            {idle, rewrite(ErrUnsuited)},
	} {
		t.Run(name, func(t *testing.T) {
			target := targets.StartProgram(t, "transfers", row.calls...)
			row.stop(t, target, transferring(t, target))
			target.Right(t)
			target.Finish(t)
		})
	}
}
