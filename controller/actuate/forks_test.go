// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// fork has a program fork: the child answers in its place until it leaves.
func fork(t *testing.T, i *actuatetest.Rig) (child int) {
	t.Helper()
	child, err := strconv.Atoi(i.Ask(t, "fork"))
	if err != nil {
		t.Fatal(err)
	}
	return child
}

// copiedChanges change a variable, the entry of a function, and the slots that lead to another.
func copiedChanges() map[string]*attunev1.Action {
	function := func(name string) *attunev1.Function { return &attunev1.Function{Object: "tuned", Symbol: name} }
	return map[string]*attunev1.Action{
		"counter": actuatetest.Set(actuatetest.TunedVariable("counter@tuned.c", access.Integer(5))),
		"entry":   {Kind: &attunev1.Action_Parameter{Parameter: &attunev1.ChangeParameter{Function: function("half"), Value: actuatetest.Decimal(9)}}},
		"slots": {Kind: &attunev1.Action_Replace{Replace: &attunev1.ReplaceFunction{
			Old: &attunev1.Function{Object: "libc.so.6", Symbol: "time"}, New: function("frozen"),
		}}},
	}
}

// applyAll makes the changes, and wants the program to show them.
func applyAll(t *testing.T, i *actuatetest.Rig) {
	t.Helper()
	for id, action := range copiedChanges() {
		if r := i.Apply(t, id, action); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatal(r)
		}
	}
}

// shows is what a program shows of them.
func shows(t *testing.T, i *actuatetest.Rig) string {
	t.Helper()
	now := "now"
	if i.Ask(t, "time") == "4711" {
		now = "frozen"
	}
	return i.Ask(t, "counter") + "; " + i.Ask(t, "functions") + "; " + now
}

const (
	unchanged = "1 2; 5 1005 2.5; now"
	changed   = "5 2; 25 1025 4.5; frozen"
)

// A change is undone in what its process has forked since as well, in whatever way it is undone.
func TestUndoInForks(t *testing.T) {
	for _, row := range []struct {
		name string
		undo func(t *testing.T, i *actuatetest.Rig)
	}{
		{"by its Actuator", func(t *testing.T, i *actuatetest.Rig) {
			for id := range copiedChanges() {
				if r := i.Actuator.Undo(t.Context(), id); r.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
					t.Error(r)
				}
			}
		}},
		{"by the journal", func(t *testing.T, i *actuatetest.Rig) {
			for id := range copiedChanges() {
				if err := i.TakeBackLeft(t, id); err != nil {
					t.Error(err)
				}
			}
		}},
		{"when its process has ended", func(t *testing.T, i *actuatetest.Rig) {
			end(t, i)
			i.Actuator.Forget(i.Process)
			if left := i.Actuator.Applied(); len(left) > 0 {
				t.Errorf("in force: %q", left)
			}
		}},
		{"by the journal when its process has ended", func(t *testing.T, i *actuatetest.Rig) {
			end(t, i)
			reopen(t, i)
			if _, err := i.Kept.UndoAll(); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			i := actuatetest.StartTuned(t, "testdata", all)
			applyAll(t, i)
			fork(t, i)
			fork(t, i) // of the fork
			if got := shows(t, i); got != changed {
				t.Fatalf("born with %q, want %q", got, changed)
			}
			row.undo(t, i)
			if got := shows(t, i); got != unchanged {
				t.Errorf("the fork of the fork has %q, want %q", got, unchanged)
			}
			i.Ask(t, "leave")
			if got := shows(t, i); got != unchanged {
				t.Errorf("the fork has %q, want %q", got, unchanged)
			}
		})
	}
}

// A change that the next controller has taken over is undone in the forks of before, too.
func TestUndoTakenOverInForks(t *testing.T) {
	i := actuatetest.StartTuned(t, "testdata", all)
	open := func() (*actuate.Journal, *actuate.Actuator) {
		journal := actuatetest.MustJournal(t, i.Dir)
		return journal, actuate.New(actuate.Options{Journal: journal, Kinds: all})
	}
	journal, earlier := open()
	actuatetest.MustApply(t, earlier, i.Process, &attunev1.Change{Id: "c", Action: copiedChanges()["counter"]})
	fork(t, i)
	until := clock.SinceBoot() + time.Minute
	if held, err := actuate.Hold(t.Context(), earlier, map[string]time.Duration{"c": time.Minute}, until, nil); err != nil || len(held) != 1 {
		t.Fatal(held, err)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	journal, next := open()
	taken, err := actuate.TakeOver(next, i.Dir, func(procid.Identity) access.Process { return i.Process }, func(access.Process) string { return "" })
	if err != nil || len(taken) != 1 {
		t.Fatal(taken, err)
	}
	r := next.Undo(t.Context(), "c")
	if got := i.Ask(t, "counter"); r.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || got != "1 2" {
		t.Errorf("the fork has %q, %v", got, r)
	}
	mustRemove(t, journal)
}

// end kills the process that was changed, and nothing that it has forked.
func end(t *testing.T, i *actuatetest.Rig) {
	t.Helper()
	kill(t, i.Process.Given)
	i.Process.Ended = true
}

// kill ends a process.
func kill(t *testing.T, process procid.Identity) {
	t.Helper()
	if err := unix.Kill(process.PID, unix.SIGKILL); err != nil {
		t.Error(err)
	}
	patience.Until(t, "its end", func() bool { return access.Ended(process) })
}

// reopen opens the journal anew, as the next command does.
func reopen(t *testing.T, i *actuatetest.Rig) {
	t.Helper()
	err := i.Kept.Close()
	if err == nil {
		i.Kept, err = all.OpenKept(patience.Context(t), i.Dir, "node")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A fork that was there before the change, and one that has set its own value since, are left
// alone.
func TestForksWithValuesOfTheirOwn(t *testing.T) {
	for _, row := range []struct {
		name   string
		before bool // forked before the change
		own    string
	}{
		{"the value of the change, set before", true, "5"},
		{"another value, set since", false, "6"},
	} {
		t.Run(row.name, func(t *testing.T) {
			i := actuatetest.StartTuned(t, "testdata", all)
			apply := func() {
				if r := i.Apply(t, "counter", copiedChanges()["counter"]); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
					t.Fatal(r)
				}
			}
			if !row.before {
				apply()
			}
			child := fork(t, i)
			i.Ask(t, "count "+row.own)
			if row.before {
				awaitTick(t, child)
				apply()
			}
			if r := i.Actuator.Undo(t.Context(), "counter"); r.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
				t.Error(r)
			}
			if got, want := i.Ask(t, "counter"), row.own+" 2"; got != want {
				t.Errorf("the fork has %q, want %q", got, want)
			}
		})
	}
}

// What was changed in a fork on top of what it was born with gives back what was there before
// both, if the first is undone first.
func TestUndoBelowChangeOfFork(t *testing.T) {
	i := actuatetest.StartTuned(t, "testdata", all)
	var member access.Process
	i.Actuator = actuate.New(actuate.Options{Journal: i.Kept.Journal, Kinds: all, Member: func(procid.Identity) (access.Process, error) { return member, nil }})
	setCounter(t, i, i.Process, "first", 5)
	member = actuatetest.MustProcess(t, fork(t, i))
	setCounter(t, i, member, "second", 6)
	for _, step := range []struct{ id, want string }{{"first", "6 2"}, {"second", "1 2"}} {
		r := i.Actuator.Undo(t.Context(), step.id)
		if got := i.Ask(t, "counter"); r.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || got != step.want {
			t.Errorf("%s undone: the fork has %q, want %q; %v", step.id, got, step.want, r)
		}
	}
}

// A change is undone while one is that was made in a fork on top of what that was born with, and
// which its own forks have, too: nothing of either is left in any of them.
func TestUndoBesideChangeOfFork(t *testing.T) {
	i := actuatetest.StartTuned(t, "testdata", all)
	var member access.Process
	var beside func(fork procid.Identity)
	i.Actuator = actuate.New(actuate.Options{Journal: i.Kept.Journal, Kinds: all, Member: func(fork procid.Identity) (access.Process, error) {
		if member != nil && fork.PID == member.PID() {
			return member, nil
		}
		beside(fork)
		return nil, nil
	}})
	setCounter(t, i, i.Process, "first", 5)
	child := actuatetest.MustProcess(t, fork(t, i))
	setCounter(t, i, child, "second", 6)
	fork(t, i)
	member = child
	if groups := actuate.Apart(i.Actuator, []string{"first", "second"}); len(groups) != 1 {
		t.Errorf("undone apart: %q", groups)
	}
	once := false
	beside = func(procid.Identity) {
		if !once {
			once = true
			if r := i.Actuator.Undo(t.Context(), "first"); r.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED {
				t.Errorf("while the one on top of it is not undone in all forks: %v", r)
			}
		}
	}
	for _, id := range []string{"second", "first"} {
		if r := i.Actuator.Undo(t.Context(), id); r.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
			t.Error(r)
		}
	}
	for _, in := range []string{"fork of the fork", "fork", "process"} {
		if got := i.Ask(t, "counter"); got != "1 2" {
			t.Errorf("the %s has %q", in, got)
		}
		if in != "process" {
			i.Ask(t, "leave")
		}
	}
}

// leftToForks makes changes of the variable, and undoes the last, which a fork keeps for now; alone
// is why until it is nil.
func leftToForks(t *testing.T, values ...int64) (i *actuatetest.Rig, alone *error) {
	t.Helper()
	i = actuatetest.StartTuned(t, "testdata", all)
	why := errors.New("it must be left alone")
	alone = &why
	i.Actuator = actuate.New(actuate.Options{Journal: i.Kept.Journal, Kinds: all, Member: func(procid.Identity) (access.Process, error) { return nil, *alone }})
	for n, value := range values {
		setCounter(t, i, i.Process, strconv.Itoa(n), value)
	}
	fork(t, i)
	if r := i.Actuator.Undo(t.Context(), strconv.Itoa(len(values)-1)); r.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED {
		t.Fatal(r)
	}
	return i, alone
}

// Of changes that lie on top of each other in a fork the upper one is undone first, whichever is
// undone when that becomes possible.
func TestOrderOfWhatForksKeep(t *testing.T) {
	for name, ended := range map[string]bool{"the process lives": false, "it has ended": true} {
		t.Run(name, func(t *testing.T) {
			i, alone := leftToForks(t, 5, 6)
			if ended {
				end(t, i)
				i.Actuator.Forget(i.Process)
			}
			*alone = nil
			if ended {
				i.Actuator.Forget(i.Process)
			}
			for _, id := range []string{"0", "1", "0"} {
				i.Actuator.Undo(t.Context(), id)
			}
			if got := i.Ask(t, "counter"); got != "1 2" || len(i.Actuator.Applied()) > 0 {
				t.Errorf("the fork has %q; in force: %q", got, i.Actuator.Applied())
			}
		})
	}
}

// A process in which a change was undone is left alone when it is undone in its forks, by whomever.
func TestUndoneInProcessOnce(t *testing.T) {
	for name, undo := range map[string]func(t *testing.T, i *actuatetest.Rig) error{
		"by its Actuator": func(t *testing.T, i *actuatetest.Rig) error {
			return actuate.Left(i.Actuator, i.Actuator.Undo(t.Context(), "0"))
		},
		"by the journal": func(t *testing.T, i *actuatetest.Rig) error { return i.TakeBackLeft(t, "0") },
	} {
		t.Run(name, func(t *testing.T) {
			i, alone := leftToForks(t, 5)
			journal := actuatetest.MustJournal(t, i.Dir)
			defer func() { mustRemove(t, journal) }()
			other := actuate.New(actuate.Options{Journal: journal, Kinds: all})
			actuatetest.MustApply(t, other, i.Process, &attunev1.Change{Id: "other", Action: copiedChanges()["counter"]})
			*alone = nil
			if err := undo(t, i); err != nil {
				t.Error(err)
			}
			if got := i.Ask(t, "counter"); got != "1 2" {
				t.Errorf("the fork has %q", got)
			}
			i.Ask(t, "leave")
			if got := i.Ask(t, "counter"); got != "5 2" {
				t.Errorf("the process has %q, want what was set by others", got)
			}
			other.Undo(t.Context(), "other")
		})
	}
}
