// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// keeper has sockets, pipes and threads; see its source.
func mustKeeper(t *testing.T) (*targets.Target, *actuatetest.Process) {
	t.Helper()
	target := targets.Start(t, targets.Build(t, "system/testdata/keeper.c"))
	return target, actuatetest.MustProcess(t, target.PID)
}

// mustActuator returns an actuator of all kinds, whose journal is closed at the end of the test.
func mustActuator(t *testing.T) *actuate.Actuator {
	t.Helper()
	journal := actuatetest.MustJournal(t, t.TempDir())
	t.Cleanup(func() { journal.Close() })
	return actuate.New(actuate.Options{Journal: journal, Kinds: all})
}

func systemChange(id, name string, value *attunev1.Value) *attunev1.Change {
	return &attunev1.Change{Id: id, Knob: name, Action: &attunev1.Action{
		Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{Name: name, Value: value}},
	}}
}

// pipeChange is of the program's own pipe; others it shares with this test.
func pipeChange(t *testing.T, target *targets.Target, id string, bytes int64) *attunev1.Change {
	t.Helper()
	fds := strings.Fields(target.Ask(t, "fds"))
	fd, err := strconv.ParseInt(fds[len(fds)-1], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	on := int32(fd)
	change := systemChange(id, "pipe.size", access.Integer(bytes))
	change.GetAction().GetSystem().On = &on
	return change
}

func pipeSize(t *testing.T, target *targets.Target) string {
	t.Helper()
	return target.Ask(t, "pipe")
}

func TestSystemSetting(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
	result := a.Apply(t.Context(), process, pipeChange(t, target, "c1", 100000))
	if result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || result.GetOldValue().GetInteger() != 65536 ||
		result.GetNewValue().GetInteger() != 131072 || result.GetSafePoint() != "now" {
		t.Fatalf("%v", result)
	}
	if got := pipeSize(t, target); got != "131072" {
		t.Errorf("the program has %s", got)
	}
	if result = a.Undo(t.Context(), "c1"); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Errorf("%v", result)
	}
	if got := pipeSize(t, target); got != "65536" {
		t.Errorf("the program has %s after undo", got)
	}
}

func TestSystemSettingRefused(t *testing.T) {
	_, process := mustKeeper(t)
	a := mustActuator(t)
	hook := systemChange("hook", "pipe.size", access.Integer(4096))
	hook.SafePoint = &attunev1.SafePoint{Kind: attunev1.SafePoint_KIND_NEXT_HOOK}
	tests := []struct {
		name   string
		change *attunev1.Change
		want   string
	}{
		{"no value", systemChange("v", "pipe.size", nil), "takes a whole number"},
		{"real value", systemChange("r", "pipe.size", actuatetest.Decimal(0.5)), "takes a whole number"},
		{"unknown", systemChange("u", "pipe.colour", access.Integer(1)), "unknown knob"},
		{"out of range", systemChange("o", "thread.nice", access.Integer(100)), "not a whole number from -20 to 19"},
		{"at a hook", hook, `safe point "now" only`},
		{"shared cgroup", systemChange("s", "cgroup.cpuset.cpus", access.TextValue("0")), "cgroup"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result := a.Apply(t.Context(), process, tt.change)
			if result.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(result.GetReason(), tt.want) {
				t.Errorf("%v, want refused: %s", result, tt.want)
			}
		})
	}
}

// A controller that dies leaves its journal; the next one restores, threads
// that turned up while it worked included.
func TestRestoreSystemSettings(t *testing.T) {
	target, process := mustKeeper(t)
	dir := t.TempDir()
	journal := actuatetest.MustJournal(t, dir)
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	for i, change := range []*attunev1.Change{
		pipeChange(t, target, "a", 1<<17),
		systemChange("b", "thread.policy", access.TextValue("batch")),
	} {
		if result := a.Apply(t.Context(), process, change); result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatalf("change %d: %v", i, result)
		}
	}
	if restored, err := all.Restore(dir); err != nil || len(restored) != 0 {
		t.Fatalf("restored %v, %v from a controller that lives", restored, err)
	}
	actuate.LetGo(journal) // as the kernel does when it dies
	target.Ask(t, "spawn 3")
	restored, err := all.Restore(dir)
	if err != nil || len(restored) != 2 || restored[0].Err != nil || restored[1].Err != nil {
		t.Fatalf("%v, %v", restored, err)
	}
	if got := pipeSize(t, target); got != "65536" {
		t.Errorf("pipe size %s", got)
	}
}

// Changes of one pipe are undone one after the other, though two processes have it; changes
// of other things wait for nobody.
func TestUndoEachOfOneThing(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
	_, first, second := mustSharePipe(t, target, 1<<17, 1<<18)
	bystander := targets.Start(t, targets.Build(t, "system/testdata/keeper.c"))
	actuatetest.MustApply(t, a, process, first)
	actuatetest.MustApply(t, a, actuatetest.MustProcess(t, os.Getpid()), second)
	actuatetest.MustApply(t, a, actuatetest.MustProcess(t, bystander.PID), pipeChange(t, bystander, "other", 1<<18))
	ids := a.Applied()
	if got := fmt.Sprint(actuate.Apart(a, ids)); got != "[[other] [second first]]" {
		t.Errorf("undone apart from each other: %s", got)
	}
	for result := range actuate.UndoEach(t.Context(), a, ids) {
		if result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
			t.Errorf("%v", result)
		}
	}
	for _, of := range []*targets.Target{target, bystander} {
		if got := pipeSize(t, of); got != "65536" {
			t.Errorf("pipe size %s", got)
		}
	}
}

// mustKept opens the journal of changes made by hand.
func mustKept(t *testing.T, dir string) *actuate.Kept {
	t.Helper()
	k, err := all.OpenKept(patience.Context(t), dir, "node")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// resize makes a change by hand and ends the command.
func resize(t *testing.T, dir string, target *targets.Target, process *actuatetest.Process, bytes int64) string {
	t.Helper()
	k := mustKept(t, dir)
	defer k.Close()
	id := k.NextID()
	result := actuate.New(actuate.Options{Journal: k.Journal, Kinds: all}).Apply(t.Context(), process, pipeChange(t, target, id, bytes))
	if result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(result)
	}
	return id
}

// What a person changed stays until they undo it, whatever controllers come.
func TestKeptByHand(t *testing.T) {
	target, process := mustKeeper(t)
	dir := t.TempDir()
	id := resize(t, dir, target, process, 1<<17)
	if restored, err := all.Restore(dir); err != nil || len(restored) != 0 {
		t.Fatalf("a controller restored %v, %v", restored, err)
	}
	changes, err := all.Changes(dir)
	if err != nil || len(changes) != 1 || changes[0].Old != "65536" || changes[0].New != "131072" ||
		changes[0].PID != target.PID || changes[0].ID != id {
		t.Fatalf("%+v, %v", changes, err)
	}
	k := mustKept(t, dir)
	defer k.Close()
	restored, err := k.Undo([]string{id})
	if err != nil || len(restored) != 1 || restored[0].Err != nil {
		t.Fatalf("%v, %v", restored, err)
	}
	if got := pipeSize(t, target); got != "65536" {
		t.Errorf("pipe size %s", got)
	}
	if changes, err := all.Changes(dir); err != nil || len(changes) != 0 {
		t.Errorf("%v, %v", changes, err)
	}
	if _, err := k.Undo([]string{id}); !errors.Is(err, actuate.ErrUnknownChange) {
		t.Errorf("undone twice: %v", err)
	}
	if next := k.NextID(); next == id {
		t.Error("an id was given twice")
	}
}

// Changes of one thing are undone in their order, or not at all.
func TestKeptOnTopOfAnother(t *testing.T) {
	target, process := mustKeeper(t)
	dir := t.TempDir()
	first, second := resize(t, dir, target, process, 1<<17), resize(t, dir, target, process, 1<<18)
	k := mustKept(t, dir)
	defer k.Close()
	if _, err := k.Undo([]string{first}); err == nil || !strings.Contains(err.Error(), "change "+second) {
		t.Errorf("%v, want a word about change %s", err, second)
	}
	if restored, err := k.Undo([]string{first, second}); err != nil || len(restored) != 2 {
		t.Errorf("%v, %v", restored, err)
	}
	if got := pipeSize(t, target); got != "65536" {
		t.Errorf("pipe size %s", got)
	}
}
