// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
	"github.com/attune-hpc/attune/internal/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// hardPoint is the measure point of TestHardCases.
const hardPoint = 3

// hard is a program for a hard case under a controller that found it running.
type hard struct {
	*bench
	*targets.Target
	attached *Attached
	program  string
	handle   uint64
}

// TestHardCases measures in every program that is hard to enter, changes it, and
// takes all of that back: the calls that are counted, a variable written from
// outside, a function whose code is patched. The program finds itself right each
// time, ends as it would have, and its code is what it was, byte by byte.
func TestHardCases(t *testing.T) {
	onX86(t)
	for _, row := range []struct {
		program   string
		arguments []string
	}{
		{"plain", nil},
		{"many", []string{"200"}}, // a slot each: more belongs to the injection alone
		{"churn", nil},
		{"alarms", nil},
		{"handler", nil},
		{"small", nil},
		{"loads", nil},
		{"spawns", nil},
		{"watches", nil},
	} {
		t.Run(row.program, func(t *testing.T) {
			h := attachHard(t, row.program, row.arguments)
			before := h.code(t)
			h.measured(t)
			h.variable(t)
			h.removed(t)
			h.attached.Leave(t.Context())
			if !bytes.Equal(h.code(t), before) {
				t.Error("the code of the program is not what it was")
			}
			h.Right(t)
			h.Finish(t)
		})
	}
}

func attachHard(t *testing.T, program string, arguments []string) *hard {
	t.Helper()
	b := start(t)
	t.Cleanup(func() { b.stop(t) })
	target := targets.StartCommand(t, exec.Command(targets.Program(t, program), arguments...))
	attached, err := b.controller.Attach(t.Context(), target.PID)
	if err != nil || attached.NotInjected != nil {
		t.Fatal(err, attached.NotInjected)
	}
	return &hard{b, target, attached, program, b.withDMLib(t, target.PID).GetHandle()}
}

// patched waits for what became of the point in the program itself, not in its
// children.
func (h *hard) patched(t *testing.T) *attunev1.PointStatus {
	t.Helper()
	for {
		s := h.placedWhile(t, hardPoint, func() { h.Right(t) })
		if s.GetProcess() == h.handle {
			return s
		}
	}
}

// measured has calls counted until there are some, and then no more.
func (h *hard) measured(t *testing.T) {
	t.Helper()
	h.sampleEvery(t, 20*time.Millisecond)
	h.addPoint(t, hardPoint, call("target_value", false))
	if s := h.patched(t); s.GetMechanism() != "patch" {
		t.Fatalf("point: %v", s)
	}
	if got := h.Ask(t, "value 3"); got != "10" {
		t.Errorf("measured, value 3 is %s, want 10", got)
	}
	h.counts(t, hardPoint, 20)
	h.Right(t)
	h.ask(t, &attunev1.ManageResponse{RequestId: "remove", Request: &attunev1.ManageResponse_RemovePoint{
		RemovePoint: &attunev1.RemovePoint{Point: hardPoint},
	}})
	h.Right(t)
}

// changed makes a change and takes it back, and compares what the program says
// meanwhile and afterwards.
func (h *hard) changed(t *testing.T, action *attunev1.Action, question, meanwhile, afterwards string) {
	t.Helper()
	change := &attunev1.Change{Id: question, Knob: question, Process: h.handle, Action: action}
	for _, r := range h.apply(t, change) {
		if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatalf("%s: %v", question, r)
		}
	}
	if got := h.Ask(t, question); got != meanwhile {
		t.Errorf("changed, %s is %s, want %s", question, got, meanwhile)
	}
	h.Right(t)
	for _, r := range h.ask(t, &attunev1.ManageResponse{RequestId: "undo", Request: &attunev1.ManageResponse_Undo{
		Undo: &attunev1.UndoChanges{ChangeIds: []string{question}},
	}}) {
		if r.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
			t.Fatalf("undo of %s: %v", question, r)
		}
	}
	if got := h.Ask(t, question); got != afterwards {
		t.Errorf("undone, %s is %s, want %s", question, got, afterwards)
	}
	h.Right(t)
}

func integer(n int64) *attunev1.Value {
	return &attunev1.Value{Kind: &attunev1.Value_Integer{Integer: n}}
}

func (h *hard) variable(t *testing.T) {
	t.Helper()
	h.changed(t, &attunev1.Action{Kind: &attunev1.Action_SetVariable{SetVariable: &attunev1.SetVariable{
		Symbol: "target_variable", Size: 8, Value: integer(6),
	}}}, "variable", "6", "5")
}

func (h *hard) removed(t *testing.T) {
	t.Helper()
	h.changed(t, &attunev1.Action{Kind: &attunev1.Action_Remove{Remove: &attunev1.RemoveCall{
		Function: &attunev1.Function{Symbol: "target_value"}, Returns: integer(42),
	}}}, "value 3", "42", "10")
}

// code is all of the program's own.
func (h *hard) code(t *testing.T) (code []byte) {
	t.Helper()
	mappings, err := objfile.Mappings(h.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mappings {
		if m.Exec && strings.HasSuffix(m.Path, "/"+h.program) {
			part := make([]byte, m.End-m.Start)
			if err := procmem.Read(h.PID, m.Start, part); err != nil {
				t.Fatal(err)
			}
			code = append(code, part...)
		}
	}
	if len(code) == 0 {
		t.Fatal("no code")
	}
	return code
}
