// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/attune-hpc/attune/controller/entry"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// all are the kinds of actions, without variables that have no symbol.
var all = All(AllOptions{})

// process is a real one, without DMLib.
type process struct {
	sync.Mutex
	pid      int
	identity procid.Identity
	ended    bool
	sites    *entry.Sites
}

func (p *process) PID() int                         { return p.pid }
func (p *process) Identity() procid.Identity        { return p.identity }
func (p *process) Alive() bool                      { return !p.ended }
func (p *process) Images() ([]objfile.Image, error) { return objfile.Images(p.pid) }
func (p *process) Mailbox() Mailbox                 { return nil }
func (p *process) Sites() *entry.Sites              { return p.sites }

func mustProcess(t testing.TB, pid int) *process {
	t.Helper()
	identity, err := procid.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{pid: pid, identity: identity}
	p.sites = NewSites(p)
	return p
}

func mustJournal(t testing.TB, dir string) *Journal {
	t.Helper()
	j, err := OpenJournal(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func set(symbol string, size uint32, value, required *attunev1.Value) *attunev1.Change {
	return &attunev1.Change{Id: "c-" + symbol, Knob: symbol, Action: &attunev1.Action{
		Kind: &attunev1.Action_SetVariable{SetVariable: &attunev1.SetVariable{
			Object: "variables", Symbol: symbol, Size: size, Value: value, RequiredOld: required,
		}},
	}}
}

func truth(v bool) *attunev1.Value { return &attunev1.Value{Kind: &attunev1.Value_Truth{Truth: v}} }
func decimal(v float64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Real{Real: v}}
}

func TestSetVariable(t *testing.T) {
	program := targets.Build(t, "testdata/variables.c")
	tests := []struct {
		name      string
		symbol    string
		size      uint32
		value     *attunev1.Value
		required  *attunev1.Value
		outcome   attunev1.Outcome
		reason    string
		now, then string // what the program sees while changed, and afterwards
	}{
		{name: "bool", symbol: "flag", size: 1, value: truth(true), required: truth(false), outcome: attunev1.Outcome_OUTCOME_APPLIED, now: "1", then: "0"},
		{name: "negative", symbol: "small", size: 2, value: integer(-300), outcome: attunev1.Outcome_OUTCOME_APPLIED, now: "-300", then: "-5"},
		{name: "int", symbol: "number", size: 4, value: integer(8), outcome: attunev1.Outcome_OUTCOME_APPLIED, now: "8", then: "7"},
		{name: "long", symbol: "large", size: 8, value: unsigned(1 << 40), outcome: attunev1.Outcome_OUTCOME_APPLIED, now: "1099511627776", then: "1"},
		{name: "double", symbol: "real", size: 8, value: decimal(0.5), outcome: attunev1.Outcome_OUTCOME_APPLIED, now: "0.5", then: "2.5"},
		{name: "other old value", symbol: "number", size: 4, value: integer(8), required: integer(6), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "requires", now: "7", then: "7"},
		{name: "wrong size", symbol: "number", size: 8, value: integer(8), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "has 4 bytes", now: "7", then: "7"},
		{name: "too large", symbol: "small", size: 2, value: integer(40000), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "does not fit", now: "-5", then: "-5"},
		{name: "odd size", symbol: "text", size: 16, value: integer(0), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "must be 1, 2, 4 or 8", now: "text", then: "text"},
		{name: "no such symbol", symbol: "nothing", size: 4, value: integer(0), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "no such symbol", now: "text", then: "text"},
		{name: "a function", symbol: "main", size: 4, value: integer(0), outcome: attunev1.Outcome_OUTCOME_REFUSED, reason: "no such symbol", now: "text", then: "text"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			target := targets.Start(t, program)
			journal := mustJournal(t, t.TempDir())
			a := New(Options{Journal: journal, Kinds: all})
			before := target.Ask(t, test.symbol)

			got := a.Apply(context.Background(), mustProcess(t, target.PID), set(test.symbol, test.size, test.value, test.required))
			if got.GetOutcome() != test.outcome || !strings.Contains(got.GetReason(), test.reason) {
				t.Fatalf("apply: %v, want %v with %q", got, test.outcome, test.reason)
			}
			if now := target.Ask(t, test.symbol); now != test.now {
				t.Errorf("program sees %q, want %q (before: %q)", now, test.now, before)
			}
			if test.outcome == attunev1.Outcome_OUTCOME_APPLIED {
				if undo := a.Undo(context.Background(), "c-"+test.symbol); undo.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
					t.Errorf("undo: %v", undo)
				}
			}
			if then := target.Ask(t, test.symbol); then != test.then {
				t.Errorf("program sees %q afterwards, want %q", then, test.then)
			}
			if err := journal.Close(); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(journal.file.Name()); !os.IsNotExist(err) {
				t.Errorf("journal is still there: %v", err)
			}
			if err := target.End(t); err != nil {
				t.Errorf("target ended with %v", err)
			}
		})
	}
}

func TestUndoLeavesWhatOthersChanged(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	journal := mustJournal(t, t.TempDir())
	a := New(Options{Journal: journal, Kinds: all})
	if got := a.Apply(context.Background(), mustProcess(t, target.PID), set("number", 4, integer(8), nil)); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(got)
	}
	target.Ask(t, "number=9")
	got := a.Undo(context.Background(), "c-number")
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED || !strings.Contains(got.GetReason(), ErrChangedByOthers.Error()) {
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
		a := New(Options{Journal: mustJournal(t, t.TempDir()), Kinds: all})
		p := mustProcess(t, target.PID)
		if got := a.Apply(t.Context(), p, set("number", 4, integer(8), nil)); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatal(got)
		}
		p.ended = true
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
	journal := mustJournal(t, dir)
	a := New(Options{Journal: journal, Kinds: all})
	process := mustProcess(t, target.PID)
	for _, change := range []*attunev1.Change{set("number", 4, integer(8), nil), set("real", 8, decimal(9), nil)} {
		if got := a.Apply(context.Background(), process, change); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatal(got)
		}
	}
	if restored, err := all.Restore(dir); err != nil || len(restored) != 0 {
		t.Fatalf("restore while the controller lives: %v, %v", restored, err)
	}
	if err := journal.file.Close(); err != nil { // as if the controller had been killed
		t.Fatal(err)
	}
	other := mustJournal(t, dir)
	if _, err := other.file.WriteString("{\"op\":\"beg"); err != nil {
		t.Fatal(err)
	}
	if err := other.file.Close(); err != nil {
		t.Fatal(err)
	}
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
	journal := mustJournal(t, dir)
	a := New(Options{Journal: journal, Kinds: all})
	process := mustProcess(t, target.PID)
	process.identity.StartTicks-- // the pid was somebody else's then
	if got := a.Apply(context.Background(), process, set("number", 4, integer(8), nil)); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(got)
	}
	if err := journal.file.Close(); err != nil {
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
	process := mustProcess(t, target.PID)
	tests := []struct {
		name   string
		action *attunev1.Action
		reason string
	}{
		{"nothing", nil, "no action"},
		{"unknown setting", setting("glibc.malloc.nothing", 1), "unknown setting"},
		{"out of bounds", setting("glibc.malloc.mmap_threshold", 64<<20), "outside 0..33554432"},
		{"no whole number", &attunev1.Action{Kind: &attunev1.Action_Setting{
			Setting: &attunev1.NamedSetting{Name: "glibc.malloc.top_pad", Value: decimal(65536)},
		}}, "whole number"},
		{"too large", &attunev1.Action{Kind: &attunev1.Action_Setting{
			Setting: &attunev1.NamedSetting{Name: "glibc.malloc.top_pad", Value: unsigned(1 << 63)},
		}}, "whole number"},
		{"no way in", setting("glibc.malloc.top_pad", 1<<20), "no DMLib"},
		{"call of nothing known", &attunev1.Action{Kind: &attunev1.Action_CallFunction{CallFunction: &attunev1.CallFunction{
			Object: "libc.so*", Symbol: "no_such_function",
		}}}, "no such symbol"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := New(Options{Journal: mustJournal(t, t.TempDir()), Kinds: all})
			got := a.Apply(context.Background(), process, &attunev1.Change{Id: "c", Action: test.action})
			if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), test.reason) {
				t.Errorf("%v, want refused with %q", got, test.reason)
			}
		})
	}
}

func setting(name string, value int64) *attunev1.Action {
	return &attunev1.Action{Kind: &attunev1.Action_Setting{
		Setting: &attunev1.NamedSetting{Name: name, Value: integer(value)},
	}}
}
