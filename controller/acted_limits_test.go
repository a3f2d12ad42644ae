// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/targets"
)

// A tuner that tries value after value needs code for each, for good: when a
// window is full the patch goes on in another one.
func TestActionsWithoutEnd(t *testing.T) {
	onX86(t)
	a := startActed(t, targets.Build(t, "testdata/acted.c", "-O2"), "a_target")
	before := a.text(t)
	const values = 700 // of two slots each: six windows
	for i := range uint64(values) {
		a.add(t, "parameter", "a_target", patch.Parameter{Value: patch.Value{Bits: i}})
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
	if err := a.End(t); err != nil {
		t.Errorf("target ended with %v", err)
	}
}

// A function that goes back to its first instruction passes the patch in each
// turn: what is to be done once a call is refused, what ends the loop is not.
func TestActionsOnALoop(t *testing.T) {
	onX86(t)
	a := startActed(t, targets.Build(t, "testdata/acted.c", "-O2"), "a_target")
	tests := map[string]struct {
		action  patch.Action
		refused bool
	}{
		"parameter": {patch.Parameter{Value: patch.Value{Bits: 3}}, true},
		"insert":    {patch.Call{Target: a.address(t, "a_log")}, true},
		"remove":    {patch.Remove{}, false},
		"replace":   {patch.Replace{Target: a.address(t, "a_target")}, false},
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
