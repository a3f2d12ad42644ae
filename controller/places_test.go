// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// callAt calls phase_now, which tells where the program is, at a safe point.
func callAt(process uint64, kind attunev1.SafePoint_Kind, function string) *attunev1.Change {
	return &attunev1.Change{
		Id: "c", Knob: "call", Process: process,
		SafePoint: &attunev1.SafePoint{Kind: kind, Function: &attunev1.Function{Object: "settings", Symbol: function}, TimeoutNanos: int64(patience.Limit)},
		Action: &attunev1.Action{Kind: &attunev1.Action_CallFunction{CallFunction: &attunev1.CallFunction{
			Object: "settings", Symbol: "phase_now",
		}}},
	}
}

// A call is made where a named function begins or returns, and nothing is left
// there: by a patch of DMLib's at an entry, by a breakpoint elsewhere.
func TestSafePointsOfFunctions(t *testing.T) {
	const entry, exit = attunev1.SafePoint_KIND_FUNCTION_ENTRY, attunev1.SafePoint_KIND_FUNCTION_EXIT
	b := start(t)
	defer b.stop(t)
	target := targets.Start(t, targets.Build(t, "testdata/settings.c"), b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)
	before := bytesOfTick(t, target.PID)
	tests := []struct {
		name, function string
		kind           attunev1.SafePoint_Kind
		phase          uint64
		outcome        attunev1.Outcome
		way, text      string
	}{
		{"entry", "tick", entry, 1, attunev1.Outcome_OUTCOME_APPLIED, "DMLib", "entry of tick"},
		{"exit", "tick", exit, 2, attunev1.Outcome_OUTCOME_APPLIED, "ptrace", "exit of tick"},
		{"entry again", "tick", entry, 1, attunev1.Outcome_OUTCOME_APPLIED, "DMLib", "entry of tick"},
		{"never entered", "never", entry, 0, attunev1.Outcome_OUTCOME_REFUSED, "", "not called"},
		{"no such function", "nothing", entry, 0, attunev1.Outcome_OUTCOME_REFUSED, "", "safe point"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			change := callAt(process.GetHandle(), tt.kind, tt.function)
			if tt.function == "never" {
				change.GetSafePoint().TimeoutNanos = int64(time.Second)
			}
			r := b.apply(t, change)[0]
			if r.GetOutcome() != tt.outcome || !strings.Contains(r.GetSafePoint()+r.GetReason(), tt.text) || !strings.Contains(r.GetWay(), tt.way) {
				t.Fatalf("%v", r)
			}
			if got := r.GetNewValue().GetUnsigned(); got != tt.phase {
				t.Errorf("called in phase %d, want %d", got, tt.phase)
			}
			b.ask(t, &attunev1.ManageResponse{RequestId: "undo", Request: &attunev1.ManageResponse_Undo{
				Undo: &attunev1.UndoChanges{ChangeIds: []string{"c"}},
			}})
		})
	}
	if after := bytesOfTick(t, target.PID); string(before) != string(after) {
		t.Error("the code is not what it was")
	}
	target.EndWell(t)
}

func bytesOfTick(t *testing.T, pid int) []byte {
	t.Helper()
	found, err := objfile.Resolve(pid, "settings", "tick", objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	code := make([]byte, found.Symbol.Size)
	if err := targets.ReadMemory(pid, found.Address, code); err != nil {
		t.Fatal(err)
	}
	return code
}
