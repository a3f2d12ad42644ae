// SPDX-License-Identifier: Apache-2.0

// Package actuatetest changes programs in tests: processes without DMLib, and an
// Actuator with the journal of what it changes.
package actuatetest

import (
	"context"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Process is a real one, without DMLib.
type Process struct {
	access.Process
	// Given is the identity that it is said to have.
	Given procid.Identity
	// Ended makes it one that has ended.
	Ended bool
	image proc.Keeper
}

// Identity returns the one that was given.
func (p *Process) Identity() procid.Identity { return p.Given }

// Hold holds what has the identity that was given.
func (p *Process) Hold() (*proc.Handle, error) { return p.image.Hold(p.Given, nil) }

// Alive reports what is said, not what is.
func (p *Process) Alive() bool { return !p.Ended }

// MustProcess returns a process that runs.
func MustProcess(t testing.TB, pid int) *Process {
	t.Helper()
	identity, err := procid.Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return &Process{Process: access.ProcessOf(identity), Given: identity}
}

// MustJournal opens a journal in dir.
func MustJournal(t testing.TB, dir string) *actuate.Journal {
	t.Helper()
	j, err := actuate.OpenJournal(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Truth is a truth value.
func Truth(v bool) *attunev1.Value { return &attunev1.Value{Kind: &attunev1.Value_Truth{Truth: v}} }

// Decimal is a real number.
func Decimal(v float64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Real{Real: v}}
}

// Setting changes a setting of a library by name.
func Setting(name string, value int64) *attunev1.Action {
	return &attunev1.Action{Kind: &attunev1.Action_Setting{
		Setting: &attunev1.NamedSetting{Name: name, Value: access.Integer(value)},
	}}
}

// Rig is a program with somebody who changes it.
type Rig struct {
	*targets.Target
	Process  *Process
	Actuator *actuate.Actuator
	// Kept is the journal of the changes, in the folder Dir.
	Kept *actuate.Kept
	Dir  string
}

// StartTuned starts tuned.c of the folder.
func StartTuned(t testing.TB, testdata string, kinds actuate.Kinds) *Rig {
	t.Helper()
	return NewRig(t, targets.Start(t, targets.Build(t, testdata+"/tuned.c", testdata+"/tuned_other.c")), kinds)
}

// NewRig returns a program with somebody who changes it by actions of these kinds.
func NewRig(t testing.TB, target *targets.Target, kinds actuate.Kinds) *Rig {
	t.Helper()
	dir := t.TempDir()
	kept, err := kinds.OpenKept(patience.Context(t), dir, "node")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() }) // it may be closed
	return &Rig{target, MustProcess(t, target.PID), actuate.New(actuate.Options{Journal: kept.Journal, Kinds: kinds}), kept, dir}
}

// TakeBackLeft undoes a change by the journal alone, as the next controller does.
func (i *Rig) TakeBackLeft(t testing.TB, id string) error {
	t.Helper()
	restored, err := i.Kept.Undo([]string{id})
	if err != nil {
		t.Fatal(err)
	}
	return restored[0].Err
}

// Apply makes a change.
func (i *Rig) Apply(t testing.TB, id string, action *attunev1.Action) *attunev1.ActionResult {
	t.Helper()
	return i.Actuator.Apply(t.Context(), i.Process, &attunev1.Change{Id: id, Knob: id, Action: action})
}

// TunedVariable is one of tuned.c, with what it gets.
func TunedVariable(symbol string, value *attunev1.Value) *attunev1.SetVariable {
	return &attunev1.SetVariable{Object: "tuned", Symbol: symbol, Value: value}
}

// Set writes a variable.
func Set(set *attunev1.SetVariable) *attunev1.Action {
	return &attunev1.Action{Kind: &attunev1.Action_SetVariable{SetVariable: set}}
}

// CallFunction calls a function.
func CallFunction(call *attunev1.CallFunction) *attunev1.Action {
	return &attunev1.Action{Kind: &attunev1.Action_CallFunction{CallFunction: call}}
}

// Load loads a library.
func Load(l *attunev1.LoadLibrary) *attunev1.Action {
	return &attunev1.Action{Kind: &attunev1.Action_Load{Load: l}}
}

// MustApply makes a change, which has to be made.
func MustApply(t testing.TB, a *actuate.Actuator, p access.Process, change *attunev1.Change) {
	t.Helper()
	if got := a.Apply(context.Background(), p, change); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatalf("apply %s: %v", change.GetId(), got)
	}
}
