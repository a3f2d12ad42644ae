// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"os/exec"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// hardPoint is a way to count calls in a hard case.
type hardPoint struct {
	mechanism string
	spec      *attunev1.MeasurePoint
}

// hardPoints are calls that every program for a hard case makes with each line
// that it is told, and more often, by each mechanism that needs no privileges.
func hardPoints() []hardPoint {
	return []hardPoint{
		{"hook", &attunev1.MeasurePoint{Id: "malloc", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}}},
		{"got", call("fflush", true)},
		{"patch", call("target_value", false)},
	}
}

// hardAction is a change by one way in, and what the program answers to a
// question while it is in force; otherwise it answers as before.
type hardAction struct {
	way                 string
	action              *attunev1.Action
	question, meanwhile string
	final               bool // it cannot be taken back
}

// hardLibrary is one that no program has loaded.
func hardLibrary(t *testing.T) string {
	t.Helper()
	return targets.BuildText(t, "libhard.so", "int hard_library = 1;\n", "-shared", "-fPIC")
}

func integer(n int64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: n}}
}

func function(symbol string) *attunev1.Function { return &attunev1.Function{Symbol: symbol} }

// callValue is a call that returns 13.
func callValue() *attunev1.Action {
	return &attunev1.Action{Kind: &attunev1.Action_CallFunction{CallFunction: &attunev1.CallFunction{
		Symbol: "target_value", Arguments: []*attunev1.Value{integer(4)}, Expect: integer(13),
	}}}
}

// hardActions are one for each way in.
func hardActions(library string) []hardAction {
	return []hardAction{
		{way: "memory write", question: "variable", meanwhile: "6", action: &attunev1.Action{
			Kind: &attunev1.Action_SetVariable{SetVariable: &attunev1.SetVariable{
				Symbol: "target_variable", Size: 8, Value: integer(6),
			}},
		}},
		{way: "entry patch", question: "value 3", meanwhile: "42", action: &attunev1.Action{
			Kind: &attunev1.Action_Remove{Remove: &attunev1.RemoveCall{
				Function: function("target_value"), Returns: integer(42),
			}},
		}},
		{way: "GOT slots", question: "time", meanwhile: "42", action: &attunev1.Action{
			Kind: &attunev1.Action_Replace{Replace: &attunev1.ReplaceFunction{
				Old: function("time"), New: function("target_time"),
			}},
		}},
		{way: "system call", question: "files", meanwhile: "512", action: &attunev1.Action{
			Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{Name: "limit.nofile", Value: integer(512)}},
		}},
		{way: "DMLib at a safe point", question: "value 3", meanwhile: "10", final: true, action: callValue()},
		{way: "ptrace at a safe place", question: "check", meanwhile: "right", action: &attunev1.Action{
			Kind: &attunev1.Action_Load{Load: &attunev1.LoadLibrary{Path: library, Symbol: "hard_library", CloseOnUndo: true}},
		}},
	}
}

// TestCallWithoutHook: the program comes by no hook for half of the time, so a
// stopped thread makes the call in the other half.
func TestCallWithoutHook(t *testing.T) {
	h := attachHard(t, "plain", exec.Command(targets.Program(t, "plain")))
	h.mustBeInside(t)
	r := h.apply(t, &attunev1.Change{Id: "call", Knob: "call", Process: h.handle, Action: callValue()})[0]
	if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || r.GetWay() != "ptrace at a safe place" || r.GetNewValue().GetUnsigned() != 13 {
		t.Errorf("call: %v", r)
	}
	h.leave(t)
	h.Finish(t)
}
