// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// all are the kinds of actions, without variables that have no symbol.
var all = kinds.All(kinds.Options{})

func set(symbol string, size uint32, value, required *attunev1.Value) *attunev1.Change {
	return &attunev1.Change{Id: "c-" + symbol, Knob: symbol, Action: &attunev1.Action{
		Kind: &attunev1.Action_SetVariable{SetVariable: &attunev1.SetVariable{
			Object: "variables", Symbol: symbol, Size: size, Value: value, RequiredOld: required,
		}},
	}}
}

// mustRemove closes a journal that has nothing left to undo.
func mustRemove(t *testing.T, j *actuate.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(actuate.PathOf(j)); !os.IsNotExist(err) {
		t.Errorf("journal is still there: %v", err)
	}
}

func TestSetVariable(t *testing.T) {
	program := targets.Build(t, "testdata/variables.c")
	tests := []struct {
		name          string
		symbol        string
		size          uint32
		value         *attunev1.Value
		required      *attunev1.Value
		outcome       attunev1.Outcome
		reason        string
		DoneNow, then string // what the program sees while changed, and afterwards
	}{
		{name: "bool", symbol: "flag", size: 1, value: actuatetest.Truth(true), required: actuatetest.Truth(false), outcome: attunev1.Outcome_OUTCOME_APPLIED, DoneNow: "1", then: "0"},
		{name: "negative", symbol: "small", size: 2, value: access.Integer(-300), outcome: attunev1.Outcome_OUTCOME_APPLIED, DoneNow: "-300", then: "-5"},
		{name: "int", symbol: "number", size: 4, value: access.Integer(8), outcome: attunev1.Outcome_OUTCOME_APPLIED, DoneNow: "8", then: "7"},
		{name: "long", symbol: "large", size: 8, value: access.Unsigned(1 << 40), outcome: attunev1.Outcome_OUTCOME_APPLIED, DoneNow: "1099511627776", then: "1"},
		{name: "double", symbol: "real", size: 8, value: actuatetest.Decimal(0.5), outcome: attunev1.Outcome_OUTCOME_APPLIED, DoneNow: "0.5", then: "2.5"},
		{name: "other old value", symbol: "number", size: 4, value: access.Integer(8), required: access.Integer(6), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "requires", DoneNow: "7", then: "7"},
		{name: "wrong size", symbol: "number", size: 8, value: access.Integer(8), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "has 4 bytes", DoneNow: "7", then: "7"},
		{name: "too large", symbol: "small", size: 2, value: access.Integer(40000), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "does not fit", DoneNow: "-5", then: "-5"},
		{name: "odd size", symbol: "text", size: 16, value: access.Integer(0), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "must be 1, 2, 4 or 8", DoneNow: "text", then: "text"},
		{name: "no such symbol", symbol: "nothing", size: 4, value: access.Integer(0), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "no such symbol", DoneNow: "text", then: "text"},
		{name: "a function", symbol: "main", size: 4, value: access.Integer(0), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "no such symbol", DoneNow: "text", then: "text"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			target := targets.Start(t, program)
			journal := actuatetest.MustJournal(t, t.TempDir())
			a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
			before := target.Ask(t, test.symbol)

			got := a.Apply(context.Background(), actuatetest.MustProcess(t, target.PID), set(test.symbol, test.size, test.value, test.required))
			if got.GetOutcome() != test.outcome || !strings.Contains(got.GetReason(), test.reason) {
				t.Fatalf("apply: %v, want %v with %q", got, test.outcome, test.reason)
			}
			if now := target.Ask(t, test.symbol); now != test.DoneNow {
				t.Errorf("program sees %q, want %q (before: %q)", now, test.DoneNow, before)
			}
			if test.outcome == attunev1.Outcome_OUTCOME_APPLIED {
				if undo := a.Undo(context.Background(), "c-"+test.symbol); undo.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
					t.Errorf("undo: %v", undo)
				}
			}
			if then := target.Ask(t, test.symbol); then != test.then {
				t.Errorf("program sees %q afterwards, want %q", then, test.then)
			}
			mustRemove(t, journal)
			target.EndWell(t)
		})
	}
}

func TestUndoLeavesWhatOthersChanged(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	journal := actuatetest.MustJournal(t, t.TempDir())
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	if got := a.Apply(context.Background(), actuatetest.MustProcess(t, target.PID), set("number", 4, access.Integer(8), nil)); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(got)
	}
	target.Ask(t, "number=9")
	got := a.Undo(context.Background(), "c-number")
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED || !strings.Contains(got.GetReason(), access.ErrChangedByOthers.Error()) {
		t.Errorf("undo: %v", got)
	}
	if now := target.Ask(t, "number"); now != "9" {
		t.Errorf("program sees %q, want its own 9", now)
	}
	if len(a.Applied()) != 0 {
		t.Errorf("still in force: %v", a.Applied())
	}
}

// The Analyzer asks for changes to be undone whose processes have ended before
// it has heard of that: nothing has failed then.
func TestUndoAfterTheProcess(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	for _, forgotten := range []bool{false, true} {
		a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: all})
		p := actuatetest.MustProcess(t, target.PID)
		if got := a.Apply(t.Context(), p, set("number", 4, access.Integer(8), nil)); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatal(got)
		}
		p.Ended = true
		if forgotten {
			a.Forget(p)
		}
		if got := a.Undo(t.Context(), "c-number"); got.GetOutcome() != attunev1.Outcome_OUTCOME_GONE {
			t.Errorf("forgotten %v: %v", forgotten, got)
		}
	}
}

func TestRestoreAfterADeadController(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	dir := t.TempDir()
	journal := actuatetest.MustJournal(t, dir)
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	process := actuatetest.MustProcess(t, target.PID)
	for _, change := range []*attunev1.Change{set("number", 4, access.Integer(8), nil), set("real", 8, actuatetest.Decimal(9), nil)} {
		if got := a.Apply(context.Background(), process, change); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatal(got)
		}
	}
	if restored, err := all.Restore(dir); err != nil || len(restored) != 0 {
		t.Fatalf("restore while the controller lives: %v, %v", restored, err)
	}
	if err := journal.Close(); err != nil { // as if the controller had been killed
		t.Fatal(err)
	}
	other := actuatetest.MustJournal(t, dir)
	damaged, err := os.OpenFile(actuate.PathOf(other), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := damaged.WriteString("{\"op\":\"beg"); err != nil {
		t.Fatal(err)
	}
	actuate.LetGo(other)
	restored, err := all.Restore(dir)
	if err != nil || len(restored) != 2 || restored[0].Err != nil || restored[1].Err != nil {
		t.Fatalf("restored %v, %v", restored, err)
	}
	if number, r := target.Ask(t, "number"), target.Ask(t, "real"); number != "7" || r != "2.5" {
		t.Errorf("program sees %s and %s, want 7 and 2.5", number, r)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestRestoreTouchesNoStranger(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	dir := t.TempDir()
	journal := actuatetest.MustJournal(t, dir)
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	process := actuatetest.MustProcess(t, target.PID)
	if _, err := process.Hold(); err != nil {
		t.Fatal(err)
	}
	process.Given.StartTicks-- // the pid was somebody else's then
	awaitTick(t, target.PID)   // who was born before the change is no fork
	if got := a.Apply(context.Background(), process, set("number", 4, access.Integer(8), nil)); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(got)
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	if restored, err := all.Restore(dir); err != nil || len(restored) != 1 || restored[0].Err != nil {
		t.Fatalf("restored %v, %v", restored, err)
	}
	if number := target.Ask(t, "number"); number != "8" {
		t.Errorf("a process that is not the journal's was changed: %s", number)
	}
}

func TestRefusals(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	process := actuatetest.MustProcess(t, target.PID)
	tests := []struct {
		name   string
		action *attunev1.Action
		reason string
	}{
		{"nothing", nil, "no action"},
		{"unknown setting", actuatetest.Setting("glibc.malloc.nothing", 1), "unknown setting"},
		{"out of bounds", actuatetest.Setting("glibc.malloc.mmap_threshold", 64<<20), "outside 0..33554432"},
		{"no whole number", &attunev1.Action{Kind: &attunev1.Action_Setting{
			Setting: &attunev1.NamedSetting{Name: "glibc.malloc.top_pad", Value: actuatetest.Decimal(65536)},
		}}, "whole number"},
		{"too large", &attunev1.Action{Kind: &attunev1.Action_Setting{
			Setting: &attunev1.NamedSetting{Name: "glibc.malloc.top_pad", Value: access.Unsigned(1 << 63)},
		}}, "whole number"},
		{"no way in", actuatetest.Setting("glibc.malloc.top_pad", 1<<20), "no DMLib"},
		{"call of nothing known", &attunev1.Action{Kind: &attunev1.Action_CallFunction{CallFunction: &attunev1.CallFunction{
			Object: "libc.so*", Symbol: "no_such_function",
		}}}, "no such symbol"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: all})
			got := a.Apply(context.Background(), process, &attunev1.Change{Id: "c", Action: test.action})
			if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), test.reason) {
				t.Errorf("%v, want refused with %q", got, test.reason)
			}
		})
	}
}

// A process that ends while it is asked for counts as alive a moment longer: its
// change is gone, and not one that failed to be undone.
func TestUndoInADyingProcess(t *testing.T) {
	i := actuatetest.StartTuned(t, "testdata", all)
	if r := i.Apply(t, "counter", actuatetest.Set(actuatetest.TunedVariable("counter@tuned.c", access.Integer(5)))); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(r)
	}
	i.Kill()
	if r := i.Actuator.Undo(t.Context(), "counter"); r.GetOutcome() != attunev1.Outcome_OUTCOME_GONE {
		t.Errorf("alive as far as is known, and without memory: %v", r)
	}
}

func TestAppliedIsInTheOrderToUndo(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: all})
	p := actuatetest.MustProcess(t, target.PID)
	for i := range 20 {
		change := set("number", 4, access.Integer(int64(i)), nil)
		change.Id = fmt.Sprint(i)
		actuatetest.MustApply(t, a, p, change)
	}
	for i, id := range a.Applied() {
		if id != fmt.Sprint(19-i) {
			t.Fatalf("order %v", a.Applied())
		}
	}
}

// What is executed while the controller stops is taken back: nobody would undo
// it.
func TestNothingStaysAfterStop(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	journal := actuatetest.MustJournal(t, t.TempDir())
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	a.Stop()
	got := a.Apply(context.Background(), actuatetest.MustProcess(t, target.PID), set("number", 4, access.Integer(8), nil))
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), "stops") {
		t.Errorf("apply: %v", got)
	}
	if number := target.Ask(t, "number"); number != "7" {
		t.Errorf("program sees %s, want 7", number)
	}
	mustRemove(t, journal)
}
