// SPDX-License-Identifier: Apache-2.0

package action

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func inTuned(symbol string) *attunev1.Function {
	return &attunev1.Function{Object: "tuned", Symbol: symbol}
}

func replacing(old, other *attunev1.Function) *attunev1.Action {
	return &attunev1.Action{Kind: &attunev1.Action_Replace{Replace: &attunev1.ReplaceFunction{Old: old, New: other}}}
}

// What the program computes as it is.
const untouched = "5 1005 2.5"

var functionActions = []struct {
	name   string
	action *attunev1.Action
	want   string // what the program computes then
}{
	{"replace", replacing(inTuned("plain"), inTuned("twice")), "10 1010 2.5"},
	{
		"remove", &attunev1.Action{Kind: &attunev1.Action_Remove{Remove: &attunev1.RemoveCall{Function: inTuned("half"), Returns: actuatetest.Decimal(7)}}},
		"5 1005 7",
	},
	{
		"remove calls of one function", &attunev1.Action{Kind: &attunev1.Action_Remove{Remove: &attunev1.RemoveCall{
			Function: inTuned("plain"), Returns: access.Integer(-1), CalledFrom: inTuned("through"),
		}}}, "5 999 2.5",
	},
	{
		"integer parameter", &attunev1.Action{Kind: &attunev1.Action_Parameter{Parameter: &attunev1.ChangeParameter{
			Function: inTuned("plain"), Value: access.Integer(-3), RequiredOld: access.Integer(5),
		}}}, "-3 997 2.5",
	},
	{
		"integer parameter that has another value", &attunev1.Action{Kind: &attunev1.Action_Parameter{Parameter: &attunev1.ChangeParameter{
			Function: inTuned("plain"), Value: access.Integer(-3), RequiredOld: access.Integer(6),
		}}}, untouched,
	},
	{
		"real parameter", &attunev1.Action{Kind: &attunev1.Action_Parameter{Parameter: &attunev1.ChangeParameter{
			Function: inTuned("half"), Value: actuatetest.Decimal(100),
		}}}, "5 1005 50",
	},
	{
		"inserted call", &attunev1.Action{Kind: &attunev1.Action_Insert{Insert: &attunev1.InsertCall{
			Function: inTuned("plain"), Call: inTuned("notice"), Place: attunev1.Place_PLACE_ENTRY,
			Arguments: []*attunev1.Argument{{Kind: &attunev1.Argument_Parameter{Parameter: 0}}},
		}}}, untouched,
	},
	{
		"call inserted at the exit", &attunev1.Action{Kind: &attunev1.Action_Insert{Insert: &attunev1.InsertCall{
			Function: inTuned("plain"), Call: inTuned("notice"), Place: attunev1.Place_PLACE_EXIT,
			Arguments: []*attunev1.Argument{{Kind: &attunev1.Argument_Result{Result: true}}},
		}}}, untouched,
	},
}

func TestFunctions(t *testing.T) {
	for _, row := range functionActions {
		t.Run(row.name, func(t *testing.T) {
			i := startTuned(t)
			code := i.code(t)
			got := i.Apply(t, "c", row.action)
			if got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetWay() != string(access.WayEntry) || got.GetPartial() != "" {
				t.Fatal(got)
			}
			if now := i.compute(t); now != row.want {
				t.Errorf("the program computes %s, want %s", now, row.want)
			}
			if n := i.noticed(t); (n > 0) != (row.action.GetInsert() != nil) || n%10 != 0 {
				t.Errorf("noticed %d, of two calls with 5 each time", n)
			}
			if undone := i.Actuator.Undo(t.Context(), "c"); undone.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
				t.Fatal(undone)
			}
			if now, before := i.compute(t), i.noticed(t); now != untouched || i.noticed(t) != before {
				t.Errorf("the program computes %s afterwards, want %s", now, untouched)
			}
			if !bytes.Equal(code, i.code(t)) {
				t.Error("the code is not what it was")
			}
		})
	}
}

// tuned is the program that is changed here.
type tuned struct{ *actuatetest.Rig }

func startTuned(t *testing.T) *tuned {
	t.Helper()
	return &tuned{actuatetest.StartTuned(t, "../testdata", Kinds())}
}

// compute has the program call its functions.
func (i *tuned) compute(t *testing.T) string {
	t.Helper()
	return i.Ask(t, "functions")
}

// noticed is the sum of what was passed to the inserted call.
func (i *tuned) noticed(t *testing.T) (sum int) {
	t.Helper()
	if _, err := fmt.Sscan(i.Ask(t, "seen"), &sum); err != nil {
		t.Fatal(err)
	}
	return sum
}

// code is that of the program.
func (i *tuned) code(t *testing.T) []byte {
	t.Helper()
	mappings, err := objfile.Mappings(i.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mappings {
		if m.Exec && strings.HasSuffix(m.Path, "/tuned") {
			code := make([]byte, m.End-m.Start)
			if err := targets.ReadMemory(i.PID, m.Start, code); err != nil {
				t.Fatal(err)
			}
			return code
		}
	}
	t.Fatal("the program has no code")
	return nil
}

// What a controller that was killed has left at functions is undone from its
// journal, each without the others.
func TestFunctionsInJournal(t *testing.T) {
	i := startTuned(t)
	code := i.code(t)
	for _, row := range functionActions[:4] {
		if row.name == "replace" {
			continue // excludes removing
		}
		if got := i.Apply(t, row.name, row.action); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatal(got)
		}
	}
	if now := i.compute(t); now != "-3 999 7" {
		t.Errorf("the program computes %s with all", now)
	}
	left, err := i.Kept.IDs()
	if err != nil || len(left) != 3 {
		t.Fatalf("%d changes in the journal, %v", len(left), err)
	}
	for n, want := range []string{"-3 999 2.5", "-3 997 2.5", untouched} {
		if err := i.TakeBackLeft(t, left[n]); err != nil {
			t.Errorf("%s: %v", left[n], err)
		}
		if now := i.compute(t); now != want {
			t.Errorf("without %s the program computes %s, want %s", left[n], now, want)
		}
	}
	if !bytes.Equal(code, i.code(t)) {
		t.Error("the code is not what it was")
	}
}

// Calls that were inserted at the entry and at the exits of a function end one by one
// from the journal alone.
func TestInsertedCallsInJournal(t *testing.T) {
	insert := func(place attunev1.Place, n int64) *attunev1.Action {
		return &attunev1.Action{Kind: &attunev1.Action_Insert{Insert: &attunev1.InsertCall{
			Function: inTuned("plain"), Call: inTuned("notice"), Place: place,
			Arguments: []*attunev1.Argument{{Kind: &attunev1.Argument_Constant{Constant: access.Integer(n)}}},
		}}}
	}
	for _, others := range []struct {
		place attunev1.Place
		name  string
	}{{attunev1.Place_PLACE_ENTRY, "entry"}, {attunev1.Place_PLACE_EXIT, "exits"}} {
		t.Run("another one at the "+others.name, func(t *testing.T) {
			i := startTuned(t)
			code := i.code(t)
			actuatetest.MustApply(t, i.Actuator, i.Process, &attunev1.Change{Id: "other", Knob: "other", Action: insert(others.place, 1)})
			actuatetest.MustApply(t, i.Actuator, i.Process, &attunev1.Change{Id: "exit", Knob: "exit", Action: insert(attunev1.Place_PLACE_EXIT, 10)})
			for _, row := range []struct {
				undo string
				want int // noticed in two calls
			}{{"", 22}, {"exit", 2}, {"other", 0}} {
				if row.undo != "" {
					if err := i.TakeBackLeft(t, row.undo); err != nil {
						t.Fatal(err)
					}
				}
				before := i.noticed(t)
				i.compute(t)
				if n := i.noticed(t) - before; n != row.want {
					t.Errorf("noticed %d after an undo of %q, want %d", n, row.undo, row.want)
				}
			}
			if !bytes.Equal(code, i.code(t)) {
				t.Error("the code is not what it was")
			}
		})
	}
}

// A function that is chosen when it is loaded is replaced in the GOT slots.
func TestReplaceByGOT(t *testing.T) {
	i := startTuned(t)
	got := i.Apply(t, "c", replacing(&attunev1.Function{Object: "libc.so.6", Symbol: "time"}, inTuned("frozen")))
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetWay() != string(access.WayGOT) || !strings.Contains(got.GetPartial(), "calls inside libc.so.6") {
		t.Fatal(got)
	}
	if now := i.Ask(t, "time"); now != "4711" {
		t.Errorf("the time is %s", now)
	}
	if err := i.TakeBackLeft(t, "c"); err != nil {
		t.Error(err)
	}
	if now := i.Ask(t, "time"); now == "4711" {
		t.Error("time still stands")
	}
}

func TestFunctionRefusals(t *testing.T) {
	i := startTuned(t)
	parameter := func(function string, n uint32, value *attunev1.Value) *attunev1.Action {
		return &attunev1.Action{Kind: &attunev1.Action_Parameter{Parameter: &attunev1.ChangeParameter{
			Function: inTuned(function), Parameter: n, Value: value,
		}}}
	}
	for _, row := range []struct {
		name   string
		action *attunev1.Action
		reason string
	}{
		{"other signature", replacing(inTuned("plain"), inTuned("half")), "parameter 0 of plain is a int"},
		{"other number of parameters", replacing(inTuned("plain"), inTuned("mixed")), "takes 1 parameters, mixed takes 5"},
		{"itself", replacing(inTuned("plain"), inTuned("plain")), "is that function"},
		{"no such function", replacing(inTuned("plan"), inTuned("twice")), "close to it: plain"},
		{"no such parameter", parameter("plain", 1, access.Integer(1)), "no register 1 has an integer or address that is a parameter of plain; there are 0 ("},
		{"parameter of another class", parameter("plain", 0, actuatetest.Decimal(1)), "no register has a floating-point number that is a parameter of plain"},
		{"no value", parameter("plain", 0, nil), "can get a value"},
		{
			"result at the entry", &attunev1.Action{Kind: &attunev1.Action_Insert{Insert: &attunev1.InsertCall{
				Function: inTuned("plain"), Call: inTuned("notice"), Arguments: []*attunev1.Argument{{Kind: &attunev1.Argument_Result{Result: true}}},
			}}}, "at the exit only",
		},
	} {
		if got := i.Apply(t, "c", row.action); got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), row.reason) {
			t.Errorf("%s: %v, want refused with %q", row.name, got, row.reason)
		}
	}
	if now := i.compute(t); now != untouched {
		t.Errorf("the program computes %s", now)
	}
}

// A process that a living controller has is left to that: two owners of one patch
// would undo what the other did.
func TestFunctionsOfAnotherController(t *testing.T) {
	i := startTuned(t)
	library, err := dmlib.Install(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	held, err := proc.Open(i.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	entered, err := inject.Inject(t.Context(), held, inject.Options{Library: library})
	if err != nil {
		t.Fatal(err)
	}
	defer entered.Memory.Close()
	other, err := procid.Of(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	own, err := shm.ThisProcess()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		owner shm.Owner
		want  attunev1.Outcome
	}{
		{"itself", own, attunev1.Outcome_OUTCOME_APPLIED},
		{"another one", shm.Owner{PID: other.PID, Start: other.StartTicks, Namespace: own.Namespace}, attunev1.Outcome_OUTCOME_REFUSED},
		{"a dead one", shm.Owner{PID: other.PID, Start: other.StartTicks + 1, Namespace: own.Namespace}, attunev1.Outcome_OUTCOME_APPLIED},
	} {
		entered.Memory.SetOwner(row.owner)
		got := i.Apply(t, "c "+row.name, replacing(inTuned("plain"), inTuned("twice")))
		remedy := fmt.Sprintf("under the control of attune (process %d): change its functions by a tunlet", row.owner.PID)
		if got.GetOutcome() != row.want || row.want == attunev1.Outcome_OUTCOME_REFUSED && !strings.Contains(got.GetReason(), remedy) {
			t.Errorf("%s: %v", row.name, got)
		}
		if undo := i.Actuator.Undo(t.Context(), "c "+row.name); row.want == attunev1.Outcome_OUTCOME_APPLIED && undo.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
			t.Errorf("%s: %v", row.name, undo)
		}
	}
}
