// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// batchThread changes the policy of one thread.
func batchThread(id string, tid int) *attunev1.Change {
	change := systemChange(id, "thread.policy", &attunev1.Value{Kind: &attunev1.Value_Text{Text: "batch"}})
	on := int32(tid)
	change.GetAction().GetSystem().On = &on
	return change
}

func mustThreads(t *testing.T, target *targets.Target) []int {
	t.Helper()
	tids, _, err := procid.AllThreads(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	return tids
}

// mustSpawn starts a thread, and returns its id when the clock of threads has moved on.
func mustSpawn(t *testing.T, target *targets.Target) int {
	t.Helper()
	before := mustThreads(t, target)
	target.Ask(t, "spawn 1")
	fresh := slices.DeleteFunc(mustThreads(t, target), func(tid int) bool { return slices.Contains(before, tid) })
	if len(fresh) != 1 {
		t.Fatalf("new threads: %v", fresh)
	}
	started := ticks()
	patience.Until(t, "the next tick", func() bool { return ticks() > started })
	return fresh[0]
}

func ticks() time.Duration { return clock.SinceBoot() / (time.Second / procid.TicksPerSecond) }

func policyOf(t *testing.T, tid int) uint32 {
	t.Helper()
	attr, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		t.Fatal(err)
	}
	return attr.Policy
}

func wantPolicy(t *testing.T, when string, tid int, want uint32) {
	t.Helper()
	if got := policyOf(t, tid); got != want {
		t.Errorf("%s: thread %d has policy %d, want %d", when, tid, got, want)
	}
}

// A thread that was started since, and that a later change has set to the same value, is that
// change's.
func TestUndoBesideAThreadStartedSince(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
	first := mustThreads(t, target)[1]
	before := policyOf(t, first)
	actuatetest.MustApply(t, a, process, batchThread("c1", first))
	second := mustSpawn(t, target)
	actuatetest.MustApply(t, a, process, batchThread("c2", second))
	for _, id := range []string{"c1", "c2"} {
		if result := a.Undo(t.Context(), id); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
			t.Errorf("%v", result)
		}
		wantPolicy(t, id+" undone", first, before)
		if id == "c1" {
			wantPolicy(t, "c1 undone", second, unix.SCHED_BATCH)
		}
	}
	wantPolicy(t, "both undone", second, before)
}

// So it is where both were made by hand: the later one is undone first, or with the other.
func TestKeptBesideAThreadStartedSince(t *testing.T) {
	target, process := mustKeeper(t)
	k := mustKept(t, t.TempDir())
	defer k.Close()
	a := actuate.New(actuate.Options{Journal: k.Journal, Kinds: all})
	tid := mustThreads(t, target)[1]
	before := policyOf(t, tid)
	actuatetest.MustApply(t, a, process, batchThread(k.NextID(), tid))
	fresh := mustSpawn(t, target)
	actuatetest.MustApply(t, a, process, batchThread(k.NextID(), fresh))
	if _, err := k.Undo([]string{"1"}); err == nil || !strings.Contains(err.Error(), "change 2") {
		t.Errorf("%v, want a word about change 2", err)
	}
	wantPolicy(t, "nothing undone", fresh, unix.SCHED_BATCH)
	if _, err := k.Undo([]string{"1", "2"}); err != nil {
		t.Error(err)
	}
	wantPolicy(t, "both undone", fresh, before)
	wantPolicy(t, "both undone", tid, before)
}

// ioThread changes the I/O priority of one thread.
func ioThread(id string, tid int, value string) *attunev1.Change {
	change := systemChange(id, "thread.ionice", &attunev1.Value{Kind: &attunev1.Value_Text{Text: value}})
	on := int32(tid)
	change.GetAction().GetSystem().On = &on
	return change
}

// ioClass is that of an I/O priority: its level means nothing in some.
func ioClass(t *testing.T, tid int) uintptr {
	t.Helper()
	const process, levels = 1, 13 // IOPRIO_WHO_PROCESS, IOPRIO_CLASS_SHIFT
	priority, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, process, uintptr(tid), 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	return priority >> levels
}

// A thread that has inherited a value and then got another one has what the first thread had,
// when both changes are undone, in whichever order.
func TestUndoOfAnInheritedValue(t *testing.T) {
	for _, order := range [][]string{{"c1", "c2"}, {"c2", "c1"}} {
		t.Run(strings.Join(order, " then "), func(t *testing.T) {
			target, process := mustKeeper(t)
			a := mustActuator(t)
			before := ioClass(t, target.PID)
			actuatetest.MustApply(t, a, process, ioThread("c1", target.PID, "best-effort:7"))
			fresh := mustSpawn(t, target) // by that thread
			actuatetest.MustApply(t, a, process, ioThread("c2", fresh, "best-effort:3"))
			for _, id := range order {
				if result := a.Undo(t.Context(), id); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
					t.Errorf("%v", result)
				}
			}
			if got := ioClass(t, fresh); got != before {
				t.Errorf("I/O priority of class %d, want %d", got, before)
			}
		})
	}
}
