// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// startReload runs testdata/reload.c with its library loaded until both of its
// functions can be patched.
func startReload(t *testing.T, flags ...string) *acted {
	t.Helper()
	program := targets.Build(t, "testdata/reload.c", "-ldl")
	library := targets.Build(t, "testdata/reloaded.c", append(flags, "-shared", "-fPIC", "-O2")...)
	return startPatchable(t, program, []string{"RELOADED=" + library}, func(a *acted) error {
		if got := a.Ask(t, "load"); got != "loaded" {
			t.Fatal(got)
		}
		a.Ask(t, "copy")
		var err error
		for _, name := range []string{"r_counted", "r_removed"} {
			err = errors.Join(err, a.atHooks(t, func(ctx context.Context) error {
				_, err := a.sites.Prepare(ctx, a.reloaded(t, name), patch.Step{Remove: &patch.Remove{}})
				return err
			}))
		}
		return err
	})
}

func (a *acted) reloaded(t *testing.T, name string) sites.Function {
	t.Helper()
	found, err := objfile.Resolve(a.PID, "reloaded", name, objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	return sites.Function{Image: found.Image, Symbol: found.Symbol}
}

// A library that is unloaded and loaded again, at the same address or another
// one, is patched again, by one byte or by a whole jump, and nothing is written
// into what lies where it lay.
func TestReloadedLibrary(t *testing.T) {
	t.Run("one byte", func(t *testing.T) { reloads(t, startReload(t)) })
	t.Run("whole jump", func(t *testing.T) { reloads(t, startReload(t, "-DWHOLE_JUMP")) })
}

func reloads(t *testing.T, a *acted) {
	a.sampleEvery(t, 20*time.Millisecond)
	spec := call("r_counted", false)
	spec.GetFunction().Object = "reloaded"
	a.addPoint(t, 1, spec)
	if s := a.placedWhile(t, 1, func() { a.Ask(t, "idle") }); s.GetMechanism() != "patch" {
		t.Fatalf("point: %v", s)
	}
	if err := a.atHooks(t, func(ctx context.Context) error {
		return a.sites.Add(ctx, a.reloaded(t, "r_removed"), patch.Step{Name: "remove", Remove: &patch.Remove{Result: patch.Value{Bits: 42}}})
	}); err != nil {
		t.Fatal(err)
	}
	for round, where := range []string{"again", "again", "moved"} {
		if got := a.Ask(t, "call"); got != "8 42" {
			t.Fatalf("round %d: %s", round, got)
		}
		a.Ask(t, "unload")
		if where == "moved" {
			if got := a.Ask(t, "decoy"); got != "decoy" {
				t.Fatal(got)
			}
			a.controller.admission.Refresh() // whoever wants to write there does
			a.untilPatcherRests(t)
		}
		if got := a.Ask(t, "load"); got != where {
			t.Fatalf("round %d: %s, want %s", round, got, where)
		}
		if round > 0 { // else it is its turn within a second
			a.controller.admission.Refresh()
		}
		a.untilPatched(t)
	}
	if got := a.Ask(t, "call"); got != "8 42" {
		t.Errorf("after all: %s", got)
	}
	if got := a.Ask(t, "compare"); got != "same" {
		t.Errorf("what lies where the library lay is %s", got)
	}
	a.drop(t, "remove")
	if got := a.Ask(t, "call"); got != "8 15" {
		t.Errorf("without the action: %s", got)
	}
	if got := a.counts(t, 1, 5); got < 5 {
		t.Errorf("counted %d calls of 5 or more", got)
	}
	a.EndWell(t)
}

// untilPatched waits until both functions are patched again, without calling
// them, and whoever has done it rests: what it may still write is meant for the
// library that is loaded now.
func (a *acted) untilPatched(t *testing.T) {
	t.Helper()
	for _, name := range []string{"r_counted", "r_removed"} {
		patience.Until(t, name+" to be patched again", func() bool {
			a.Ask(t, "idle")
			return a.isPatched(t, name)
		})
	}
	a.untilPatcherRests(t)
	target := a.controller.members.OfPID(a.PID)
	patience.Until(t, "sites that are as they should be", func() bool {
		a.Ask(t, "idle")
		return !target.Sites().Stale()
	})
}

// untilPatcherRests brings the program to its safe points until nobody waits for
// one to patch it.
func (a *acted) untilPatcherRests(t *testing.T) {
	t.Helper()
	patience.Until(t, "the end of patching", func() bool {
		a.Ask(t, "idle")
		return a.controller.admission.Refresh() == 0
	})
}

func (a *acted) isPatched(t *testing.T, name string) bool {
	t.Helper()
	f := a.reloaded(t, name)
	code := make([]byte, 1)
	if err := targets.ReadMemory(a.PID, f.Image.Address(f.Symbol.Value), code); err != nil {
		t.Fatal(err)
	}
	return code[0] == patch.JumpOpcode
}
