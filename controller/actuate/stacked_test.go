// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustOpenPipe opens the pipe of a change: this process has it as well, then.
func mustOpenPipe(t *testing.T, target *targets.Target, change *attunev1.Change) *os.File {
	t.Helper()
	pipe, err := os.Open(fmt.Sprintf("/proc/%d/fd/%d", target.PID, change.GetAction().GetSystem().GetOn()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pipe.Close() })
	return pipe
}

// mustUndo undoes a change and wants the pipe to have a size then.
func mustUndo(t *testing.T, a *actuate.Actuator, target *targets.Target, id, size string) {
	t.Helper()
	result := a.Undo(t.Context(), id)
	if got := pipeSize(t, target); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || got != size {
		t.Errorf("%v, pipe size %s, want %s", result, got, size)
	}
}

// Whichever of several changes of one thing is undone first, the others stay, and the last one
// gives back what was there before all of them.
func TestUndoBelowLaterChanges(t *testing.T) {
	target, process := mustKeeper(t)
	dir := t.TempDir()
	journal := actuatetest.MustJournal(t, dir)
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	change := func(id string, bytes int64) {
		t.Helper()
		actuatetest.MustApply(t, a, process, pipeChange(t, target, id, bytes))
	}
	change("c1", 1<<17)
	change("c2", 1<<18)
	change("c3", 1<<19)
	mustUndo(t, a, target, "c1", "524288")
	mustUndo(t, a, target, "c3", "262144")
	mustUndo(t, a, target, "c2", "65536")
	change("c1", 1<<17)
	change("same", 1<<17)
	mustUndo(t, a, target, "c1", "131072")
	mustUndo(t, a, target, "same", "65536")
	change("c1", 1<<17)
	change("c2", 1<<18)
	mustUndo(t, a, target, "c1", "262144")
	actuate.LetGo(journal) // killed
	if restored, err := all.Restore(dir); err != nil || len(restored) != 1 || restored[0].Err != nil || pipeSize(t, target) != "65536" {
		t.Errorf("restored %v, %v, pipe size %s", restored, err, pipeSize(t, target))
	}
}

// A change whose undo gives back another value than it found is told so.
func TestToldOfWhatIsGivenBack(t *testing.T) {
	target, process := mustKeeper(t)
	journal := actuatetest.MustJournal(t, t.TempDir())
	defer journal.Close()
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	actuatetest.MustApply(t, a, process, pipeChange(t, target, "c1", 1<<17))
	actuatetest.MustApply(t, a, process, pipeChange(t, target, "c2", 1<<18))
	mustUndo(t, a, target, "c1", "262144")
	if told := a.InForce(); len(told) != 1 || told[0].Old != "65536" || told[0].New != "262144" {
		t.Errorf("in force: %+v", told)
	}
	if listed, err := all.Changes(filepath.Dir(actuate.PathOf(journal))); err != nil || len(listed) != 1 || listed[0].Old != "65536" {
		t.Errorf("listed: %+v, %v", listed, err)
	}
	if result := a.Undo(t.Context(), "c2"); result.GetNewValue() != nil && result.GetNewValue().GetInteger() != 65536 {
		t.Errorf("%v", result)
	}
}

// So it is where the later change has been taken back in part: it gives nothing back twice.
func TestUndoBelowAPartialUndo(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
	first := pipeChange(t, target, "c1", 1<<17)
	actuatetest.MustApply(t, a, process, first)
	actuatetest.MustApply(t, a, process, pipeChange(t, target, "c2", 1<<18))
	if _, err := unix.FcntlInt(mustOpenPipe(t, target, first).Fd(), unix.F_SETPIPE_SZ, 1<<17); err != nil {
		t.Fatal(err)
	}
	mustUndo(t, a, target, "c1", "65536")
	mustUndo(t, a, target, "c2", "65536")
}

// Two processes have the pipe. While something is being changed in the one, what lies below its
// change stays, to be undone later.
func TestUndoBelowAnotherProcess(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
	_, first, second := mustSharePipe(t, target, 1<<17, 1<<18)
	own := actuatetest.MustProcess(t, os.Getpid())
	actuatetest.MustApply(t, a, process, first)
	actuatetest.MustApply(t, a, own, second)
	own.Lock()
	if result := a.Undo(t.Context(), "first"); result.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED || len(a.Applied()) != 2 {
		t.Errorf("%v, in force: %v", result, a.Applied())
	}
	own.Unlock()
	mustUndo(t, a, target, "first", "262144")
	mustUndo(t, a, target, "second", "65536")
}

// A change made by hand on top of a controller's gives back what was there before both: the
// controller gives its own up, or is killed before it sees that it should.
func TestByHandOnTopOfAController(t *testing.T) {
	tests := map[string]func(t *testing.T, a *actuate.Actuator, journal *actuate.Journal){
		"given up": func(t *testing.T, a *actuate.Actuator, journal *actuate.Journal) {
			overridden := a.Overridden()
			if len(overridden) != 1 || len(actuate.Yielded(a, overridden[0], a.Undo(t.Context(), overridden[0].ID))) != 1 {
				t.Fatalf("overridden: %v", overridden)
			}
			if err := journal.Close(); err != nil {
				t.Error(err)
			}
		},
		"killed": func(_ *testing.T, _ *actuate.Actuator, journal *actuate.Journal) { actuate.LetGo(journal) },
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
			before := target.Ask(t, "number")
			dir := t.TempDir()
			journal := actuatetest.MustJournal(t, dir)
			a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
			process := actuatetest.MustProcess(t, target.PID)
			actuatetest.MustApply(t, a, process, set("number", 0, access.Integer(1001), nil))
			byHand := set("number", 0, access.Integer(1002), nil)
			mustUndoByHand(t, dir, process, byHand, before, func() { end(t, a, journal) })
			if now := target.Ask(t, "number"); now != before {
				t.Errorf("the variable is %s, want %s", now, before)
			}
		})
		t.Run(name+", of the system", func(t *testing.T) {
			target, process := mustKeeper(t)
			dir := t.TempDir()
			journal := actuatetest.MustJournal(t, dir)
			a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
			actuatetest.MustApply(t, a, process, pipeChange(t, target, "c1", 1<<20))
			mustUndoByHand(t, dir, process, pipeChange(t, target, "", 1<<18), "65536", func() { end(t, a, journal) })
			if got := pipeSize(t, target); got != "65536" {
				t.Errorf("pipe size %s", got)
			}
		})
	}
}

// What fails by hand on top of a controller's change, in this process or later in another one,
// leaves that change as it was.
func TestFailsByHandOnTopOfAController(t *testing.T) {
	failing := &actuatetest.Feigned{Run: func() error { return errors.New("cannot be made") }}
	halfMade := actuate.Kinds{Actions: slices.Clone(all.Actions), Undos: all.Undos}
	for i, kind := range all.Actions {
		halfMade.Actions[i].Plan = func(ctx context.Context, r *actuate.Request) (*actuate.Plan, error) {
			p, err := kind.Plan(ctx, r)
			if err == nil {
				p.Read = func() (*attunev1.Value, error) { return nil, errors.New("half made") }
			}
			return p, err
		}
	}
	tests := []struct {
		name    string
		kinds   actuate.Kinds
		beside  []*attunev1.Change
		outcome attunev1.Outcome
		reason  string
	}{
		{
			"rolled back", failing.Kinds().And(all), []*attunev1.Change{{Id: "2", Action: actuatetest.Setting("s", 1)}},
			attunev1.Outcome_OUTCOME_UNDONE, "taken back: change 2 could not be applied",
		},
		{"fails", halfMade, nil, attunev1.Outcome_OUTCOME_FAILED, "half made"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			target, process := mustKeeper(t)
			dir := t.TempDir()
			journal := actuatetest.MustJournal(t, dir)
			defer journal.Close()
			a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
			actuatetest.MustApply(t, a, process, pipeChange(t, target, "c1", 1<<17))
			k := mustKept(t, dir)
			defer k.Close()
			items := []actuate.Item{{Process: process, Change: pipeChange(t, target, "1", 1<<18)}}
			for _, change := range test.beside {
				items = append(items, actuate.Item{Process: process, Change: change})
			}
			byHand := actuate.New(actuate.Options{Journal: k.Journal, Kinds: test.kinds})
			result := byHand.ApplySet(t.Context(), items, actuate.SetHooks{})[0]
			if result.GetOutcome() != test.outcome || result.GetReason() != test.reason {
				t.Errorf("%v", result)
			}
			if got, overridden := pipeSize(t, target), a.Overridden(); got != "131072" || len(overridden) > 0 {
				t.Errorf("pipe size %s, overridden: %v", got, overridden)
			}
		})
	}
}

// mustUndoByHand makes a change by hand, and undoes it, in a command each, and something in between.
// It is listed with the old value that it gives back.
func mustUndoByHand(t *testing.T, dir string, process *actuatetest.Process, change *attunev1.Change, old string, between func()) {
	t.Helper()
	k := mustKept(t, dir)
	change.Id = k.NextID()
	actuatetest.MustApply(t, actuate.New(actuate.Options{Journal: k.Journal, Kinds: all}), process, change)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	between()
	k = mustKept(t, dir)
	defer k.Close()
	if changes, err := all.Changes(dir); err != nil || len(changes) == 0 || changes[0].ID != change.GetId() || changes[0].Old != old {
		t.Errorf("listed: %+v, %v", changes, err)
	}
	restored, err := k.UndoAll()
	for _, r := range restored {
		if err = errors.Join(err, r.Err); err != nil {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
