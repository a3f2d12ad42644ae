// SPDX-License-Identifier: Apache-2.0

//go:build amd64

package actuate

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/policy"
	"github.com/attune-hpc/attune/internal/authn"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
	"github.com/attune-hpc/attune/internal/targets"
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
	return &inside{target, mustProcess(t, target.PID), New(Options{Journal: mustJournal(t, dir)}), dir}
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
	left, err := openChanges(i.actuator.options.Journal.file.Name())
	if err != nil || len(left) != 2 {
		t.Fatalf("%d changes in the journal, %v", len(left), err)
	}
	for at := len(left) - 1; at >= 0; at-- {
		if err := restoreRecord(left[at]); err != nil {
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

func TestCall(t *testing.T) {
	i := startInside(t)
	second, err := strconv.Atoi(i.Ask(t, "second"))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name string
		call *attunev1.CallFunction
		at   *attunev1.SafePoint
		want *attunev1.Value
		last string // what the program saw
	}{
		{
			name: "mixed arguments", last: "-7 2.5 a text 4 8589934592", want: decimal(3),
			call: &attunev1.CallFunction{
				Symbol: "mixed", Result: attunev1.ResultType_RESULT_TYPE_REAL,
				Arguments: []*attunev1.Value{integer(-7), decimal(2.5), textValueOf("a text"), decimal(4), integer(1 << 33)},
			},
		},
		{
			name: "a text that is written to", last: "!ext", want: unsigned(4),
			call: &attunev1.CallFunction{Symbol: "spoil", Arguments: []*attunev1.Value{textValueOf("text")}},
		},
		{
			name: "in one thread", last: "!ext", want: unsigned(uint64(second)),
			call: &attunev1.CallFunction{Symbol: "thread_id"}, at: &attunev1.SafePoint{Thread: int32(second)},
		},
		{
			name: "six texts", last: "!", want: unsigned(1),
			call: &attunev1.CallFunction{Symbol: "spoil", Arguments: []*attunev1.Value{
				textValueOf("x"), textValueOf(strings.Repeat("y", 600)), textValueOf(""), textValueOf("z"), textValueOf("z"), textValueOf("z"),
			}},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.call.Object = "tuned"
			got := i.actuator.Apply(t.Context(), i.process, &attunev1.Change{Id: row.name, Action: calling(row.call), SafePoint: row.at})
			if got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetWay() != string(WayStopped) || got.GetStoppedNanos() == 0 {
				t.Fatal(got)
			}
			if value := got.GetNewValue(); value.GetReal() != row.want.GetReal() || value.GetUnsigned() != row.want.GetUnsigned() {
				t.Errorf("returned %v, want %v", value, row.want)
			}
			if last := i.Ask(t, "last"); last != row.last {
				t.Errorf("the program saw %q, want %q", last, row.last)
			}
		})
	}
}

func TestCallRefusals(t *testing.T) {
	i := startInside(t)
	hook := &attunev1.SafePoint{Kind: attunev1.SafePoint_KIND_NEXT_HOOK}
	for _, row := range []struct {
		name   string
		call   *attunev1.CallFunction
		at     *attunev1.SafePoint
		reason string
	}{
		{"no such function", &attunev1.CallFunction{Symbol: "mixd"}, nil, "close to it: mixed"},
		{"seven arguments", &attunev1.CallFunction{Symbol: "spoil", Arguments: make([]*attunev1.Value, 7)}, nil, "at most 6"},
		{"argument without a value", &attunev1.CallFunction{Symbol: "spoil", Arguments: []*attunev1.Value{{}}}, nil, "integers, addresses"},
		{"texts too long", &attunev1.CallFunction{Symbol: "spoil", Arguments: []*attunev1.Value{textValueOf(strings.Repeat("x", maxThunk))}}, nil, "too long"},
		{"expected of nothing", &attunev1.CallFunction{Symbol: "spoil", Result: attunev1.ResultType_RESULT_TYPE_NONE, Expect: integer(1)}, nil, "returns nothing"},
		{"a hook without DMLib", &attunev1.CallFunction{Symbol: "thread_id"}, hook, "hook of DMLib"},
		{"a thread that is none", &attunev1.CallFunction{Symbol: "thread_id"}, &attunev1.SafePoint{Thread: 1}, "no thread 1"},
	} {
		row.call.Object = "tuned"
		got := i.actuator.Apply(t.Context(), i.process, &attunev1.Change{Id: "c", Action: calling(row.call), SafePoint: row.at})
		if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), row.reason) {
			t.Errorf("%s: %v, want refused with %q", row.name, got, row.reason)
		}
	}
	if got := i.Ask(t, "last"); got != "!othing" {
		t.Errorf("something was called: %s", got)
	}
}

func buildLibrary(t *testing.T) string {
	t.Helper()
	return targets.BuildWith(t, "gcc", "library.so", "testdata/library.c", "-shared", "-fPIC")
}

// environment is a variable of the program's, as its own getenv has it.
func (i *inside) environment(t *testing.T) string {
	t.Helper()
	got := i.apply(t, "getenv", calling(&attunev1.CallFunction{
		Object: "libc.so.6", Symbol: "getenv", Arguments: []*attunev1.Value{textValueOf("ATTUNE_TEST_LIBRARY")},
	}))
	i.actuator.Undo(t.Context(), "getenv")
	if got.GetNewValue().GetUnsigned() == 0 {
		return ""
	}
	text := make([]byte, 6)
	if err := procmem.Read(i.PID, got.GetNewValue().GetUnsigned(), text); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func loadOf(l *attunev1.LoadLibrary) *attunev1.Action {
	return &attunev1.Action{Kind: &attunev1.Action_Load{Load: l}}
}

func TestLoadLibrary(t *testing.T) {
	i, library := startInside(t), buildLibrary(t)
	got := i.apply(t, "load", loadOf(&attunev1.LoadLibrary{Path: library, Symbol: "from_library", CloseOnUndo: true}))
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || got.GetNewValue().GetUnsigned() == 0 {
		t.Fatal(got)
	}
	if env := i.environment(t); env != "loaded" {
		t.Errorf("the constructor did not run: %q", env)
	}
	called := i.apply(t, "call", calling(&attunev1.CallFunction{Object: "library.so", Symbol: "from_library"}))
	if called.GetNewValue().GetUnsigned() != 4711 {
		t.Errorf("call into it: %v", called)
	}
	if undone := i.actuator.Undo(t.Context(), "load"); undone.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Error(undone)
	}
	if _, there := mapped(i.process, library); there || i.environment(t) != "closed" {
		t.Errorf("it is still there, or its destructor did not run")
	}
}

// A library that a killed controller has loaded is closed by its journal.
func TestLoadedLibraryInJournal(t *testing.T) {
	i, library := startInside(t), buildLibrary(t)
	for _, row := range []struct {
		close bool
		want  error
	}{{true, nil}, {false, ErrLibraryStays}} {
		if got := i.apply(t, "load", loadOf(&attunev1.LoadLibrary{Path: library, CloseOnUndo: row.close})); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatal(got)
		}
		left, err := openChanges(i.actuator.options.Journal.file.Name())
		if err != nil || len(left) != 1 {
			t.Fatalf("%d changes in the journal, %v", len(left), err)
		}
		if err := restoreRecord(left[0]); !errors.Is(err, row.want) {
			t.Errorf("close %v: %v, want %v", row.close, err, row.want)
		}
		if _, there := mapped(i.process, library); there == row.close {
			t.Errorf("close %v: mapped %v", row.close, there)
		}
		i.actuator.Forget(i.process)
	}
}

func TestLoadRefusals(t *testing.T) {
	i, library := startInside(t), buildLibrary(t)
	for _, row := range []struct {
		name    string
		load    *attunev1.LoadLibrary
		outcome attunev1.Outcome
		reason  string
	}{
		{"relative", &attunev1.LoadLibrary{Path: "library.so"}, attunev1.Outcome_OUTCOME_REFUSED, "absolute"},
		{"none", &attunev1.LoadLibrary{Path: "/nothing.so"}, attunev1.Outcome_OUTCOME_REFUSED, "no such file"},
		{"no ELF file", &attunev1.LoadLibrary{Path: "/etc/passwd"}, attunev1.Outcome_OUTCOME_REFUSED, "ELF"},
		{"lacks the symbol", &attunev1.LoadLibrary{Path: library, Symbol: "from_nowhere"}, attunev1.Outcome_OUTCOME_REFUSED, "no such symbol"},
		{"a program", &attunev1.LoadLibrary{Path: "/bin/true"}, attunev1.Outcome_OUTCOME_FAILED, "cannot dynamically load"},
	} {
		got := i.apply(t, "c", loadOf(row.load))
		if got.GetOutcome() != row.outcome || !strings.Contains(got.GetReason(), row.reason) {
			t.Errorf("%s: %v, want %v with %q", row.name, got, row.outcome, row.reason)
		}
	}
}

func TestPolicyComesFirst(t *testing.T) {
	i, library := startInside(t), buildLibrary(t)
	rules, err := policy.Parse("rules", []byte(`
rules:
  - deny: [set]
    names: ["tuned:counter"]
  - allow: [set]
    names: ["tuned:ratio"]
    max: 2
  - deny: [call]
    names: ["libc.so.6:*"]
  - deny: [load, setting]
  - deny: [system]
    names: [limit.*]
`))
	if err != nil {
		t.Fatal(err)
	}
	i.actuator.options.Policy = func() *policy.Policy { return rules }
	before := i.Ask(t, "counter")
	for _, row := range []struct {
		rule   string
		action *attunev1.Action
	}{
		{"rule 1", write(setting1("counter@tuned.c", integer(5)))},
		{"rule 2", write(setting1("ratio", decimal(2.5)))},
		{"rule 3", calling(&attunev1.CallFunction{Object: "libc*", Symbol: "getpid"})},
		{"rule 4", loadOf(&attunev1.LoadLibrary{Path: library})},
		{"rule 4", &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: "glibc.malloc.top_pad", Value: integer(0)}}}},
		{"rule 5", &attunev1.Action{Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{Name: "limit.core", Value: integer(0)}}}},
	} {
		got := i.apply(t, "c", row.action)
		if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), row.rule+" of rules") {
			t.Errorf("%v: %v, want %s", row.action, got, row.rule)
		}
	}
	agreed := &attunev1.Change{
		Id: "c", Action: setting("mpi_t.eager_limit", 1),
		SafePoint: &attunev1.SafePoint{Kind: attunev1.SafePoint_KIND_AGREED_CALL},
	}
	got := i.actuator.ApplyAgreed(t.Context(), []Member{{i.process, agreed}})[0]
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), "rule 4 of rules") {
		t.Errorf("at an agreed call: %v", got)
	}
	if got := i.Ask(t, "counter"); got != before {
		t.Errorf("the program has %s, had %s", got, before)
	}
	i.actuator.options.Asker = authn.OfUser(4711)
	i.actuator.options.Policy = nil
	if got := i.apply(t, "c", write(setting1("ratio", decimal(2)))); got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), "belongs to user") {
		t.Errorf("another user's process: %v", got)
	}
}

func TestSetOfProcesses(t *testing.T) {
	first, second := startInside(t), startInside(t)
	change := func(id string, value *attunev1.Value, required *attunev1.Value) *attunev1.Change {
		set := setting1("ratio", value)
		set.RequiredOld = required
		return &attunev1.Change{Id: id, Action: write(set)}
	}
	failing := &attunev1.Change{Id: "fails", Action: calling(&attunev1.CallFunction{Object: "tuned", Symbol: "thread_id", Expect: integer(-1)})}
	a := first.actuator
	for _, row := range []struct {
		name     string
		items    []Item
		outcomes []attunev1.Outcome
		ratios   [2]string
	}{
		{
			"refused: nobody is touched",
			[]Item{{first.process, change("a", decimal(2), nil)}, {second.process, change("b", decimal(2), decimal(7))}},
			[]attunev1.Outcome{attunev1.Outcome_OUTCOME_REFUSED, attunev1.Outcome_OUTCOME_REFUSED}, [2]string{"1.5", "1.5"},
		},
		{
			"fails: taken back",
			[]Item{{first.process, change("a", decimal(2), nil)}, {nil, change("n", decimal(2), nil)}, {second.process, failing}, {second.process, change("b", decimal(2), nil)}},
			[]attunev1.Outcome{attunev1.Outcome_OUTCOME_UNDONE, attunev1.Outcome_OUTCOME_GONE, attunev1.Outcome_OUTCOME_FAILED, attunev1.Outcome_OUTCOME_REFUSED},
			[2]string{"1.5", "1.5"},
		},
		{
			"made in both",
			[]Item{{first.process, change("a", decimal(2), nil)}, {second.process, change("b", decimal(3), nil)}},
			[]attunev1.Outcome{attunev1.Outcome_OUTCOME_APPLIED, attunev1.Outcome_OUTCOME_APPLIED}, [2]string{"2", "3"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			results := a.ApplySet(context.Background(), row.items, SetHooks{})
			for n, want := range row.outcomes {
				if results[n].GetOutcome() != want || results[n].GetChangeId() != row.items[n].Change.GetId() ||
					(want != attunev1.Outcome_OUTCOME_APPLIED) != (results[n].GetReason() != "") {
					t.Errorf("change %d: %v, want %v", n, results[n], want)
				}
			}
			if got := [2]string{first.Ask(t, "ratio"), second.Ask(t, "ratio")}; got != row.ratios {
				t.Errorf("the programs have %v, want %v", got, row.ratios)
			}
		})
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
