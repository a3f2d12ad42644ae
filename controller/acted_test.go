// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// acted is testdata/acted.c under a controller.
type acted struct {
	*bench
	*targets.Target
	sites *sites.Sites
}

// startActed starts the program until all the functions can be patched: where
// jumps lead is up to the kernel.
func startActed(t *testing.T, program string, functions ...string) *acted {
	t.Helper()
	return startPatchable(t, program, nil, func(a *acted) error { return a.tryAll(t, functions) })
}

// startPatchable starts the program, with an addition to the environment, until try finds that
// all can be patched.
func startPatchable(t *testing.T, program string, env []string, try func(*acted) error) *acted {
	t.Helper()
	b := start(t)
	t.Cleanup(func() { b.stop(t) })
	const tries = 60
	for range tries {
		target := targets.Start(t, program, append(b.controller.Environment(), env...)...)
		process := b.withDMLib(t, target.PID)
		a := &acted{bench: b, Target: target, sites: b.controller.members.Get(process.GetHandle()).Sites()}
		err := try(a)
		if err == nil {
			return a
		}
		if !errors.Is(err, patch.ErrUnpatchable) {
			t.Fatal(err)
		}
		target.EndWell(t)
	}
	t.Fatalf("in none of %d processes all can be patched", tries)
	return nil
}

func (a *acted) tryAll(t *testing.T, functions []string) error {
	t.Helper()
	for _, name := range functions {
		err := a.atHooks(t, func(ctx context.Context) error {
			_, err := a.sites.Prepare(ctx, a.function(t, name), patch.Step{Remove: &patch.Remove{}})
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// atHooks does what waits for DMLib while the program comes by its hooks.
func (a *acted) atHooks(t *testing.T, do func(ctx context.Context) error) error {
	t.Helper()
	ctx := patience.Context(t)
	done := make(chan error, 1)
	go func() { done <- do(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		default:
			a.Ask(t, "idle")
		}
	}
}

func (a *acted) function(t *testing.T, name string) sites.Function {
	t.Helper()
	found, err := objfile.Resolve(a.PID, "acted*", name, objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	return sites.Function{Image: found.Image, Symbol: found.Symbol}
}

func (a *acted) address(t *testing.T, name string) uint64 {
	f := a.function(t, name)
	return f.Image.Address(f.Symbol.Value)
}

// add does an action under the function's own name.
func (a *acted) add(t *testing.T, name, function string, step patch.Step) {
	t.Helper()
	step.Name = name
	if err := a.atHooks(t, func(ctx context.Context) error { return a.sites.Add(ctx, a.function(t, function), step) }); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func (a *acted) drop(t *testing.T, name string) {
	t.Helper()
	if err := a.sites.Drop(t.Context(), name); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// text is the whole code of the program.
func (a *acted) text(t *testing.T) []byte {
	t.Helper()
	f := a.function(t, "main")
	mappings, err := objfile.Mappings(a.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mappings {
		if m.Inode == f.Image.Inode && m.Exec {
			code := make([]byte, m.End-m.Start)
			if err := targets.ReadMemory(a.PID, m.Start, code); err != nil {
				t.Fatal(err)
			}
			return code
		}
	}
	t.Fatal("no code")
	return nil
}

// answers are the program's when nothing is changed.
const plainAnswer = "target 21 real 5 one 70 two 700 integers 654321 narrow 283 reals 8.76543e+07 many 295.5 logged 0  errno 1"

func old(value uint64) *uint64 { return &value }

// Actions and counting come and go on one function under threads that call it
// without pause; no call is lost to the count, and each has a result that makes
// sense.
func TestActionsComeAndGo(t *testing.T) {
	rounds := targets.Fewer(200)
	for _, flags := range [][]string{{"-O2"}, {"-O0", "-fcf-protection=full"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			a := startActed(t, targets.Build(t, "testdata/acted.c", flags...), "a_target")
			a.sampleEvery(t, 20*time.Millisecond)
			before := a.text(t)
			a.addPoint(t, 1, call("a_target", false))
			if s := a.placedWhile(t, 1, func() { a.Ask(t, "idle") }); s.GetMechanism() != "patch" {
				t.Fatalf("point: %v", s)
			}
			a.Ask(t, "hammer")
			other, f := a.address(t, "a_other"), a.function(t, "a_target")
			for i := range rounds {
				actions := []patch.Step{
					{Replace: &patch.Replace{Target: other}},
					{Remove: &patch.Remove{Result: patch.Value{Bits: 42}}},
					{Parameter: &patch.Parameter{Number: 1, Value: patch.Value{Bits: 5}, Old: old(5), Width: 4}},
				}
				a.add(t, "first", "a_target", actions[i%2])
				second := actions[1-i%2]
				second.Name = "second"
				if err := a.sites.Add(t.Context(), f, second); !errors.Is(err, sites.ErrConflict) {
					t.Fatalf("replaced and removed: %v", err)
				}
				a.add(t, "third", "a_target", actions[2])
				a.drop(t, "first")
				a.drop(t, "third")
			}
			var calls, wrong uint64
			if _, err := fmt.Sscan(a.Ask(t, "halt"), &calls, &wrong); err != nil || wrong != 0 {
				t.Errorf("%d of %d results are wrong, %v", wrong, calls, err)
			}
			if got := a.counts(t, 1, calls); got != calls {
				t.Errorf("counted %d calls of %d", got, calls)
			}
			a.controller.placer.Remove(1)
			a.placed(t, 1)
			if !bytes.Equal(a.text(t), before) {
				t.Error("the code is not what it was")
			}
			a.EndWell(t)
		})
	}
}

// fork returns the child, which answers in its parent's place until it leaves.
func (a *acted) fork(t *testing.T) *acted {
	t.Helper()
	pid, err := strconv.Atoi(a.Ask(t, "fork"))
	if err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "DMLib in the child", func() bool {
		a.Ask(t, "idle")
		child := a.controller.members.OfPID(pid)
		return child != nil && child.Memory() != nil
	})
	child := &acted{bench: a.bench, Target: a.Target, sites: a.controller.members.OfPID(pid).Sites()}
	child.PID = pid
	return child
}

// A forked child is born with the actions of its parent. It goes on with them
// when it is measured as well, can be rid of them, and the parent keeps its own.
func TestActionsOfForkedChild(t *testing.T) {
	a := startActed(t, targets.Build(t, "testdata/acted.c", "-O2"), "a_target")
	a.sampleEvery(t, 20*time.Millisecond)
	before := a.text(t)
	a.add(t, "remove", "a_target", patch.Step{Remove: &patch.Remove{Result: patch.Value{Bits: 42}}})
	with, _, _ := strings.Cut(plainAnswer, "logged")
	with = strings.Replace(with, "target 21", "target 42", 1)
	parent := a.PID
	child := a.fork(t)
	var names []string
	if err := child.atHooks(t, func(ctx context.Context) (err error) {
		names, err = child.sites.Inherited(ctx, child.function(t, "a_target"), false)
		return err
	}); err != nil || len(names) != 1 || names[0] != "remove" {
		t.Fatalf("inherited %q, %v", names, err)
	}
	a.addPoint(t, 1, call("a_target", false))
	for range 2 { // in both processes
		if s := a.anyPlacedWhile(t, func() { a.Ask(t, "idle") }); s.GetMechanism() != "patch" {
			t.Errorf("point: %v", s)
		}
	}
	if got := child.Ask(t, "call"); !strings.HasPrefix(got, with) {
		t.Errorf("child, measured and inherited: %s", got)
	}
	child.drop(t, "remove")
	if got := child.Ask(t, "call"); got != plainAnswer {
		t.Errorf("child, without the action: %s", got)
	}
	a.controller.placer.Remove(1)
	a.anyPlaced(t)
	a.anyPlaced(t)
	if !bytes.Equal(child.text(t), before) {
		t.Error("the child's code is not what it was")
	}
	child.Ask(t, "leave")
	a.PID = parent
	if got := a.Ask(t, "call"); !strings.HasPrefix(got, with) {
		t.Errorf("parent: %s", got)
	}
	a.EndWell(t)
}

// What the Analyzer has changed in a process is undone in its forks too: in one that DMLib has
// registered in the meantime, and in one that nobody was told of yet.
func TestUndoInForkedChildren(t *testing.T) {
	for _, row := range []struct {
		name string
		fork func(*testing.T, *acted)
	}{
		{"registered", func(t *testing.T, a *acted) { t.Helper(); a.fork(t) }},
		{"just forked", func(t *testing.T, a *acted) { t.Helper(); a.Ask(t, "fork") }},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := startActed(t, targets.Build(t, "testdata/acted.c", "-O2"), "a_target")
			change := &attunev1.Change{
				Id: "c1", Knob: "a_target", Process: a.controller.members.OfPID(a.PID).Handle(),
				Action: &attunev1.Action{Kind: &attunev1.Action_Parameter{Parameter: &attunev1.ChangeParameter{
					Function: &attunev1.Function{Object: "acted", Symbol: "a_target"}, Value: access.Integer(100),
				}}},
			}
			if results := a.apply(t, change); len(results) != 1 || results[0].GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
				t.Fatal(results)
			}
			row.fork(t, a)
			if got := a.Ask(t, "call"); got == plainAnswer {
				t.Fatal("the child was not born with the change")
			}
			results := a.ask(t, &attunev1.ManageResponse{RequestId: "undo", Request: &attunev1.ManageResponse_Undo{
				Undo: &attunev1.UndoChanges{ChangeIds: []string{"c1"}},
			}})
			if len(results) != 1 || results[0].GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
				t.Error(results)
			}
			if got := a.Ask(t, "call"); got != plainAnswer {
				t.Errorf("child: %s", got)
			}
			a.Ask(t, "leave")
			if got := a.Ask(t, "call"); got != plainAnswer {
				t.Errorf("parent: %s", got)
			}
			a.EndWell(t)
		})
	}
}

// A process whose code was given back does nothing of what it did, also when another
// controller measures the function where that was done.
func TestUndoneActionStaysUndone(t *testing.T) {
	a := startActed(t, targets.Build(t, "testdata/acted.c", "-O2"), "a_target")
	remove := patch.Step{Remove: &patch.Remove{Result: patch.Value{Bits: 42}}}
	var code []sites.Bytes
	if err := a.atHooks(t, func(ctx context.Context) (err error) {
		code, err = a.sites.Prepare(ctx, a.function(t, "a_target"), remove)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	a.add(t, "remove", "a_target", remove)
	parent := a.PID
	child := a.fork(t)
	identity, err := procid.Of(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range code { // as after the death of the parent's controller
		if err := sites.Restore(t.Context(), access.Outside{Process: access.ProcessOf(identity)}, b); err != nil {
			t.Fatal(err)
		}
	}
	a.addPoint(t, 1, call("a_target", false))
	for range 2 { // in both processes
		if s := a.anyPlacedWhile(t, func() { a.Ask(t, "idle") }); s.GetMechanism() != "patch" {
			t.Errorf("point: %v", s)
		}
	}
	if got := child.Ask(t, "call"); got != plainAnswer {
		t.Errorf("child, measured: %s", got)
	}
	child.Ask(t, "leave")
	a.PID = parent
	a.EndWell(t)
}
