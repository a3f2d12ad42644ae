// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// A tuner that tries value after value needs code for each, for good: when a
// window is full the patch goes on in another one.
func TestActionsWithoutEnd(t *testing.T) {
	a := startActed(t, targets.Build(t, "testdata/acted.c", "-O2"), "a_target")
	before := a.text(t)
	const values = 700 // of two slots each: six windows
	for i := range uint64(values) {
		a.add(t, "parameter", "a_target", patch.Step{Parameter: &patch.Parameter{Value: patch.Value{Bits: i}}})
		if want := fmt.Sprintf("target %d ", 2*i+1); i%50 == 0 && !strings.HasPrefix(a.Ask(t, "call"), want) {
			t.Fatalf("value %d: no %q", i, want)
		}
		a.drop(t, "parameter")
	}
	if got := a.Ask(t, "call"); got != plainAnswer {
		t.Errorf("after: %s", got)
	}
	if !bytes.Equal(a.text(t), before) {
		t.Error("the code is not what it was")
	}
	a.EndWell(t)
}

// A function that goes back to its first instruction passes the patch in each
// turn: what is to be done once a call is refused, what ends the loop is not.
func TestActionsOnALoop(t *testing.T) {
	a := startActed(t, targets.Build(t, "testdata/acted.c", "-O2"), "a_target")
	tests := map[string]struct {
		action  patch.Step
		refused bool
	}{
		"parameter": {patch.Step{Parameter: &patch.Parameter{Value: patch.Value{Bits: 3}}}, true},
		"insert":    {patch.Step{Call: &patch.Call{Target: a.address(t, "a_log")}}, true},
		"remove":    {patch.Step{Remove: &patch.Remove{}}, false},
		"replace":   {patch.Step{Replace: &patch.Replace{Target: a.address(t, "a_target")}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := a.atHooks(t, func(ctx context.Context) error {
				_, err := a.sites.Prepare(ctx, a.function(t, "a_circle"), test.action)
				return err
			})
			refused := errors.Is(err, patch.ErrUnpatchable) && strings.Contains(err.Error(), "leads back to its entry")
			if refused != test.refused || err != nil && !refused {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Where one byte does not do, a whole jump comes and goes under threads that
// execute the code, one of them at the second instruction now and then.
func TestActionsByWholeJump(t *testing.T) {
	for name, flags := range map[string][]string{"PIE": {"-O2"}, "fixed addresses": {"-O2", "-no-pie"}} {
		t.Run(name, func(t *testing.T) {
			a := startActed(t, targets.Build(t, "testdata/acted.c", flags...), "a_whole")
			before := a.text(t)
			a.Ask(t, "hammer")
			for range targets.Fewer(100) {
				a.unlessBusy(t, func() error {
					return a.sites.Add(t.Context(), a.function(t, "a_whole"), patch.Step{Name: "remove", Remove: &patch.Remove{Result: patch.Value{Bits: 42}}})
				})
				a.mustJump(t, "a_whole")
				if err := a.sites.Drop(t.Context(), "remove"); err != nil && !errors.Is(err, inject.ErrBusy) {
					t.Fatal(err)
				}
				a.unlessBusy(t, func() error { // the controller tries again by itself
					if !bytes.Equal(a.text(t), before) {
						return inject.ErrBusy
					}
					return nil
				})
			}
			var calls, wrong uint64
			if _, err := fmt.Sscan(a.Ask(t, "halt"), &calls, &wrong); err != nil || calls == 0 || wrong != 0 {
				t.Errorf("%d of %d results are wrong, %v", wrong, calls, err)
			}
			a.EndWell(t)
		})
	}
}

// unlessBusy does something again and again while threads cannot be stopped at a
// good place, as may be on a busy machine.
func (a *acted) unlessBusy(t *testing.T, do func() error) {
	t.Helper()
	patience.Until(t, "a good place to stop", func() bool {
		err := do()
		if err != nil && !errors.Is(err, inject.ErrBusy) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// mustJump says that a function begins with a jump that is not what one byte
// would make of it.
func (a *acted) mustJump(t *testing.T, name string) {
	t.Helper()
	code, address := make([]byte, patch.JumpBytes), a.address(t, name)
	if err := targets.ReadMemory(a.PID, address, code); err != nil {
		t.Fatal(err)
	}
	to, ok := patch.JumpTarget(address, code)
	if !ok || to == address+patch.JumpBytes+5 {
		t.Fatalf("%s begins with % x", name, code)
	}
}
