// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// failsOnce returns a function that fails once.
func failsOnce() func() error {
	calls := 0
	return func() error {
		if calls++; calls == 1 {
			return errors.New("not now")
		}
		return nil
	}
}

// later is an Actuator with a change whose undo fails once.
func later(t *testing.T, feigned *actuatetest.Feigned) (a *actuate.Actuator, apply func(*actuatetest.Process) *attunev1.ActionResult) {
	t.Helper()
	undo := failsOnce()
	feigned.TakeBack = func(string) error { return undo() }
	journal := actuatetest.MustJournal(t, t.TempDir())
	t.Cleanup(func() { _ = journal.Close() })
	a = actuate.New(actuate.Options{Journal: journal, Kinds: feigned.Kinds()})
	return a, func(p *actuatetest.Process) *attunev1.ActionResult {
		var owed []string
		results := a.ApplySet(t.Context(), []actuate.Item{{Process: p, Change: &attunev1.Change{Id: "c1", Action: actuatetest.Setting("s", 1)}}},
			actuate.SetHooks{Undoing: func(id string) { owed = append(owed, id) }})
		if want := a.Applied(); results[0].GetOutcome() == attunev1.Outcome_OUTCOME_FAILED && !slices.Equal(owed, want) {
			t.Errorf("owed are %v, in force %v", owed, want)
		}
		return results[0]
	}
}

// A change that failed and could not be taken back at once is taken back later.
func TestFailedChangeIsUndoneLater(t *testing.T) {
	a, apply := later(t, &actuatetest.Feigned{Run: func() error { return errors.New("half made") }})
	if result := apply(actuatetest.MustProcess(t, os.Getpid())); result.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED {
		t.Fatalf("%v", result)
	}
	if ids := a.Applied(); !slices.Equal(ids, []string{"c1"}) {
		t.Fatalf("in force are %v", ids)
	}
	if result := a.Undo(t.Context(), "c1"); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || len(a.Applied()) > 0 {
		t.Errorf("%v", result)
	}
}

// A change that failed and was taken back, of which the journal cannot say so, is in force for those
// who try again.
func TestFailedChangeThatTheJournalHas(t *testing.T) {
	feigned := &actuatetest.Feigned{Run: func() error { return errors.New("half made") }}
	journal := actuatetest.MustJournal(t, t.TempDir())
	actuate.SetStep(journal, func(op string) {
		if op == "end" {
			actuate.LetGo(journal) // nothing can be written any more
		}
	})
	a := actuate.New(actuate.Options{Journal: journal, Kinds: feigned.Kinds()})
	change := &attunev1.Change{Id: "c1", Action: actuatetest.Setting("s", 1)}
	r := a.Apply(t.Context(), actuatetest.MustProcess(t, os.Getpid()), change)
	if r.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED || !slices.Equal(a.Applied(), []string{"c1"}) {
		t.Errorf("%v; in force: %q", r, a.Applied())
	}
}

// What outlives its process and could not be taken back when that ended is tried again, and
// said to be in force until then.
func TestLeftIsTakenBackLater(t *testing.T) {
	a, apply := later(t, &actuatetest.Feigned{About: actuate.About{Outlives: true}})
	process := actuatetest.MustProcess(t, os.Getpid())
	if result := apply(process); result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatalf("%v", result)
	}
	process.Ended = true
	if result := a.Undo(t.Context(), "c1"); result.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED || actuate.Left(a, result) == nil {
		t.Errorf("%v", result)
	}
	if result := a.Undo(t.Context(), "c1"); result.GetOutcome() != attunev1.Outcome_OUTCOME_GONE || len(a.Applied()) > 0 {
		t.Errorf("%v", result)
	}
}

// What the next program that a process executes has inherited is given back.
func TestExecutedProgramGetsItsOwn(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
	actuatetest.MustApply(t, a, process, systemChange("c1", "thread.policy", &attunev1.Value{Kind: &attunev1.Value_Text{Text: "batch"}}))
	actuatetest.MustApply(t, a, process, systemChange("c2", "thread.policy", &attunev1.Value{Kind: &attunev1.Value_Text{Text: "other"}}))
	actuatetest.MustApply(t, a, process, systemChange("c3", "thread.policy", &attunev1.Value{Kind: &attunev1.Value_Text{Text: "batch"}}))
	if answer := target.Ask(t, "exec"); answer != "ready" {
		t.Fatalf("%q", answer)
	}
	if attr, err := unix.SchedGetAttr(target.PID, 0); err != nil || attr.Policy != unix.SCHED_BATCH {
		t.Fatalf("it has inherited %+v, %v", attr, err)
	}
	a.Forget(process)
	if attr, err := unix.SchedGetAttr(target.PID, 0); err != nil || attr.Policy != unix.SCHED_NORMAL {
		t.Errorf("it has %+v, %v", attr, err)
	}
}

// What somebody else has written between two changes is there again after both, in whatever order
// they are undone.
func TestUndoBelowALaterChangeOfOthers(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	process := actuatetest.MustProcess(t, target.PID)
	a := mustActuator(t)
	change := func(id string, value int64) {
		t.Helper()
		c := set("number", 0, access.Integer(value), nil)
		c.Id = id
		actuatetest.MustApply(t, a, process, c)
	}
	change("c1", 1001)
	target.Ask(t, "number=9")
	change("c2", 1002)
	for _, id := range []string{"c1", "c2"} {
		if result := a.Undo(t.Context(), id); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
			t.Errorf("%v", result)
		}
	}
	if now := target.Ask(t, "number"); now != "9" {
		t.Errorf("the variable is %s, want 9", now)
	}
}
