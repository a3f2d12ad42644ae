// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package actuate

import (
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// inside is testdata/tuned.c, with somebody who changes it.
type inside struct {
	*targets.Target
	process  *process
	actuator *Actuator
	journal  string
}

func startInside(t *testing.T) *inside {
	t.Helper()
	target := targets.Start(t, targets.Build(t, "testdata/tuned.c", "testdata/tuned_other.c"))
	dir := t.TempDir()
	return &inside{target, mustProcess(t, target.PID), New(Options{Journal: mustJournal(t, dir), Kinds: all}), dir}
}

func (i *inside) apply(t *testing.T, id string, action *attunev1.Action) *attunev1.ActionResult {
	t.Helper()
	return i.actuator.Apply(t.Context(), i.process, &attunev1.Change{Id: id, Knob: id, Action: action})
}

func setting1(symbol string, value *attunev1.Value) *attunev1.SetVariable {
	return &attunev1.SetVariable{Object: "tuned", Symbol: symbol, Value: value}
}

func write(set *attunev1.SetVariable) *attunev1.Action {
	return &attunev1.Action{Kind: &attunev1.Action_SetVariable{SetVariable: set}}
}

func calling(call *attunev1.CallFunction) *attunev1.Action {
	return &attunev1.Action{Kind: &attunev1.Action_CallFunction{CallFunction: call}}
}

func TestStaticVariables(t *testing.T) {
	i := startInside(t)
	if got := i.apply(t, "c", write(setting1("counter", integer(5)))); got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED ||
		!strings.Contains(got.GetReason(), "counter@tuned.c") || !strings.Contains(got.GetReason(), "counter@tuned_other.c") {
		t.Errorf("two of one name: %v, want both listed", got)
	}
	if got := i.apply(t, "c", write(setting1("counter@tuned_other.c", integer(5)))); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetWay() != string(WayMemory) {
		t.Fatal(got)
	}
	if got := i.Ask(t, "counter"); got != "1 5" {
		t.Errorf("the program has %s, want 1 5", got)
	}
	i.actuator.Undo(t.Context(), "c")
	if got := i.Ask(t, "counter"); got != "1 2" {
		t.Errorf("the program has %s afterwards, want 1 2", got)
	}
}

func TestTypesOfVariables(t *testing.T) {
	i := startInside(t)
	for _, row := range []struct {
		symbol string
		value  *attunev1.Value
		reason string // empty: applied
	}{
		{"fixed", integer(4), "is constant"},
		{"counter@tuned.c", decimal(2), "takes no real number"},
		{"ratio", integer(2), ""},
	} {
		got := i.apply(t, row.symbol, write(setting1(row.symbol, row.value)))
		applied := got.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED
		if applied != (row.reason == "") || !strings.Contains(got.GetReason(), row.reason) {
			t.Errorf("%s: %v, want %q", row.symbol, got, row.reason)
		}
	}
	if got := i.Ask(t, "ratio"); got != "2" {
		t.Errorf("a double that was given a whole number is %s, want 2", got)
	}
}

func TestThreadLocalVariable(t *testing.T) {
	i := startInside(t)
	second, err := strconv.Atoi(i.Ask(t, "second"))
	if err != nil {
		t.Fatal(err)
	}
	one := setting1("own", integer(20))
	one.Thread = int32(second)
	if got := i.apply(t, "one", write(one)); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetOldValue().GetInteger() != 10 {
		t.Fatal(got)
	}
	if got := i.Ask(t, "own"); got != "10 20" {
		t.Errorf("the threads have %s, want 10 20", got)
	}
	got := i.apply(t, "all", write(setting1("own", integer(30))))
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || !strings.Contains(got.GetPartial(), "start later") {
		t.Fatal(got)
	}
	if got := i.Ask(t, "own"); got != "30 30" {
		t.Errorf("the threads have %s, want 30 30", got)
	}
	// What a controller that was killed has left is undone from its journal.
	left, err := all.openChanges(i.actuator.options.Journal.file.Name())
	if err != nil || len(left) != 2 {
		t.Fatalf("%d changes in the journal, %v", len(left), err)
	}
	for at := len(left) - 1; at >= 0; at-- {
		if err := left[at].takeBack(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := i.Ask(t, "own"); got != "10 10" {
		t.Errorf("the threads have %s afterwards, want 10 10", got)
	}
	one.Thread = 1
	if got := i.apply(t, "none", write(one)); got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED {
		t.Errorf("a thread of another process: %v", got)
	}
}

// A word of a thread that has ended is left alone, whoever has its number now.
func TestWordOfAnEndedThread(t *testing.T) {
	i := startInside(t)
	content := []byte{1, 0, 0, 0}
	now, err := threadNow(i.PID)
	if err != nil {
		t.Fatal(err)
	}
	found, err := lookup(i.process, "tuned", "ratio", objfile.Variable)
	if err != nil {
		t.Fatal(err)
	}
	w := Word{Address: found.Address, New: content, Old: []byte{9, 9, 9, 9}, Thread: &Thread{TID: now.TID, StartTicks: now.StartTicks + 1}}
	if err := put(i.PID, w, content); err != nil {
		t.Fatal(err)
	}
	if err := putBack(i.PID, w); err != nil {
		t.Error(err)
	}
	there := make([]byte, 4)
	if err := procmem.Read(i.PID, w.Address, there); err != nil || string(there) != string(content) {
		t.Errorf("% x, %v, want % x", there, err, content)
	}
}

// A process that ends while it is asked for counts as alive a moment longer: its
// change is gone, and not one that failed to be undone.
func TestUndoInADyingProcess(t *testing.T) {
	i := startInside(t)
	if r := i.apply(t, "counter", write(setting1("counter@tuned.c", integer(5)))); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(r)
	}
	i.Kill()
	if r := i.actuator.Undo(t.Context(), "counter"); r.GetOutcome() != attunev1.Outcome_OUTCOME_GONE {
		t.Errorf("alive as far as is known, and without memory: %v", r)
	}
}
