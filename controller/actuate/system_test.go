// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// keeper has sockets, pipes and threads; see its source.
func mustKeeper(t *testing.T) (*targets.Target, *process) {
	t.Helper()
	target := targets.Start(t, targets.Build(t, "system/testdata/keeper.c"))
	return target, mustProcess(t, target.PID)
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
	change := systemChange(id, "pipe.size", integer(bytes))
	change.GetAction().GetSystem().On = &on
	return change
}

func text(v string) *attunev1.Value { return &attunev1.Value{Kind: &attunev1.Value_Text{Text: v}} }

func pipeSize(t *testing.T, target *targets.Target) string {
	t.Helper()
	return target.Ask(t, "pipe")
}

func TestSystemSetting(t *testing.T) {
	target, process := mustKeeper(t)
	journal := mustJournal(t, t.TempDir())
	defer journal.Close()
	a := New(Options{Journal: journal, Kinds: all})
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
	journal := mustJournal(t, t.TempDir())
	defer journal.Close()
	a := New(Options{Journal: journal, Kinds: all})
	hook := systemChange("hook", "pipe.size", integer(4096))
	hook.SafePoint = &attunev1.SafePoint{Kind: attunev1.SafePoint_KIND_NEXT_HOOK}
	tests := []struct {
		name   string
		change *attunev1.Change
		want   string
	}{
		{"no value", systemChange("v", "pipe.size", nil), "takes a whole number"},
		{"real value", systemChange("r", "pipe.size", decimal(0.5)), "takes a whole number"},
		{"unknown", systemChange("u", "pipe.colour", integer(1)), "unknown knob"},
		{"out of range", systemChange("o", "thread.nice", integer(100)), "not a whole number from -20 to 19"},
		{"at a hook", hook, `safe point "now" only`},
		{"shared cgroup", systemChange("s", "cgroup.cpuset.cpus", text("0")), "cgroup"},
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
	journal := mustJournal(t, dir)
	a := New(Options{Journal: journal, Kinds: all})
	for i, change := range []*attunev1.Change{
		pipeChange(t, target, "a", 1<<17),
		systemChange("b", "thread.policy", text("batch")),
	} {
		if result := a.Apply(t.Context(), process, change); result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatalf("change %d: %v", i, result)
		}
	}
	if restored, err := all.Restore(dir); err != nil || len(restored) != 0 {
		t.Fatalf("restored %v, %v from a controller that lives", restored, err)
	}
	journal.file.Close() // as the kernel does when it dies
	target.Ask(t, "spawn 3")
	restored, err := all.Restore(dir)
	if err != nil || len(restored) != 2 || restored[0].Err != nil || restored[1].Err != nil {
		t.Fatalf("%v, %v", restored, err)
	}
	if got := pipeSize(t, target); got != "65536" {
		t.Errorf("pipe size %s", got)
	}
}

// mustKept opens the journal of changes made by hand.
func mustKept(t *testing.T, dir string) *Kept {
	t.Helper()
	k, err := all.OpenKept(patience.Context(t), dir, "node")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// resize makes a change by hand and ends the command.
func resize(t *testing.T, dir string, target *targets.Target, process *process, bytes int64) string {
	t.Helper()
	k := mustKept(t, dir)
	defer k.Close()
	id := k.NextID()
	result := New(Options{Journal: k.Journal, Kinds: all}).Apply(t.Context(), process, pipeChange(t, target, id, bytes))
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
	if _, err := k.Undo([]string{id}); !errors.Is(err, ErrUnknownChange) {
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

// Two commands at once wait for each other; nothing gets lost.
func TestKeptIsLocked(t *testing.T) {
	_, process := mustKeeper(t)
	dir := t.TempDir()
	k := mustKept(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := all.OpenKept(ctx, dir, "node"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, want to have waited", err)
	}
	done := make(chan string, 4)
	for i := range 4 {
		go func() {
			one := mustKept(t, dir)
			defer one.Close()
			id := one.NextID()
			err := one.append(record{Op: "begin", Change: id, Knob: fmt.Sprint(i), Process: &process.identity})
			if err != nil {
				t.Error(err)
			}
			done <- id
		}()
	}
	k.Close()
	ids := map[string]bool{}
	for range 4 {
		ids[<-done] = true
	}
	if changes, err := all.Changes(dir); err != nil || len(changes) != 4 || len(ids) != 4 {
		t.Errorf("%d ids, changes %v, %v", len(ids), changes, err)
	}
}

// A process that ended drops its changes; half a line does no harm.
func TestKeptOfTheDead(t *testing.T) {
	_, process := mustKeeper(t)
	dir := t.TempDir()
	dead := process.identity
	dead.StartTicks-- // the pid is another's by now
	k := mustKept(t, dir)
	id := k.NextID()
	if err := k.append(record{Op: "begin", Change: id, Process: &dead}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.file.WriteString(`{"op":"begin","change":"9`); err != nil {
		t.Fatal(err)
	}
	k.Close()
	if changes, err := all.Changes(dir); err != nil || len(changes) != 0 {
		t.Errorf("%v, %v", changes, err)
	}
	k = mustKept(t, dir)
	defer k.Close()
	data, err := os.ReadFile(k.path)
	if err != nil || strings.Count(string(data), "\n") != 1 || strings.Contains(string(data), "begin") {
		t.Errorf("journal has %q, %v", data, err)
	}
	if k.NextID() == id {
		t.Error("an id was given twice")
	}
}
