// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// hard is a program for a hard case under a controller that found it running.
type hard struct {
	*bench
	*targets.Target
	attached *Attached
	program  string
	handle   uint64
}

// TestHardCases measures in every program that is hard to enter, by each way to
// count calls, changes it by each way in, and takes all of that back. The program
// finds itself right each time, ends as it would have, and its code is what it
// was, byte by byte.
func TestHardCases(t *testing.T) {
	library := hardLibrary(t)
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
		{"faults", nil},
	} {
		t.Run(row.program, func(t *testing.T) {
			h := attachHard(t, row.program, exec.Command(targets.Program(t, row.program), row.arguments...))
			h.mustBeInside(t)
			before := h.code(t)
			for i, point := range hardPoints() {
				h.measured(t, uint32(3+i), point)
			}
			for _, action := range hardActions(library) {
				h.changed(t, action)
			}
			h.leave(t)
			if !bytes.Equal(h.code(t), before) {
				t.Error("the code of the program is not what it was")
			}
			h.Finish(t)
		})
	}
}

// attachHard attaches to a program of package targets that runs as command.
func attachHard(t *testing.T, program string, command *exec.Cmd) *hard {
	t.Helper()
	b := start(t)
	t.Cleanup(func() { b.stop(t) })
	target := targets.StartCommand(t, command)
	attached, err := b.controller.Attach(t.Context(), target.PID)
	if err != nil {
		t.Fatal(err)
	}
	b.sampleEvery(t, 20*time.Millisecond)
	return &hard{bench: b, Target: target, attached: attached, program: program, handle: b.controller.members.OfPID(target.PID).Handle()}
}

// mustBeInside ends the test unless DMLib is in the program.
func (h *hard) mustBeInside(t *testing.T) {
	t.Helper()
	if h.attached.NotInjected != nil {
		t.Fatal(h.attached.NotInjected)
	}
	h.withDMLib(t, h.PID)
}

// leave lets the program go, which goes on.
func (h *hard) leave(t *testing.T) {
	t.Helper()
	h.attached.Leave(t.Context())
	h.Right(t)
}

// status waits for what became of a point in the program itself, not in its
// children.
func (h *hard) status(t *testing.T, index uint32) *attunev1.PointStatus {
	t.Helper()
	for {
		s := h.placedWhile(t, index, func() { h.Right(t) })
		if s.GetProcess() == h.handle {
			return s
		}
	}
}

// measured has calls counted until there are some, and then no more.
func (h *hard) measured(t *testing.T, index uint32, p hardPoint) {
	t.Helper()
	h.addPoint(t, index, p.spec)
	if s := h.status(t, index); s.GetMechanism() != p.mechanism {
		t.Fatalf("%s: %v, want mechanism %s", p.spec.GetId(), s, p.mechanism)
	}
	const lines = 20 // with each the program comes by all of the points
	for range lines {
		if got := h.Ask(t, "value 3"); got != "10" {
			t.Errorf("measured, value 3 is %s, want 10", got)
		}
	}
	h.counts(t, index, lines)
	h.Right(t)
	h.removePoint(t, index)
	h.Right(t)
}

// changed makes a change and takes it back, and compares what the program says
// meanwhile and afterwards.
func (h *hard) changed(t *testing.T, a hardAction) {
	t.Helper()
	t.Log("change by " + a.way)
	before := h.Ask(t, a.question)
	done := h.asking(t)
	r := h.try(t, a)
	done()
	if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || r.GetWay() != a.way {
		t.Fatalf("%s: %v", a.way, r)
	}
	h.takenBack(t, a, before)
}

// try makes a change and returns the answer, which has a reason if the outcome is
// another than applied.
func (h *hard) try(t *testing.T, a hardAction) *attunev1.ActionResult {
	t.Helper()
	results := h.apply(t, &attunev1.Change{Id: a.way, Knob: a.way, Process: h.handle, Action: a.action})
	if len(results) != 1 {
		t.Fatalf("%s: answers %v, want one", a.way, results)
	}
	r := results[0]
	if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED && r.GetReason() == "" {
		t.Errorf("%s: %v, want a reason", a.way, r)
	}
	return r
}

// asking has the program answer lines, with each of which it comes by hooks,
// until done is called.
func (h *hard) asking(t *testing.T) (done func()) {
	t.Helper()
	over, asked := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; {
			if h.Say("check") == nil {
				n++
			}
			select {
			case <-over:
				asked <- n
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() {
		t.Helper()
		close(over)
		for range <-asked {
			h.Expect(t, "right")
		}
	}
}

// takenBack looks whether a change is in force, undoes it, and looks again.
func (h *hard) takenBack(t *testing.T, a hardAction, before string) {
	t.Helper()
	if got := h.Ask(t, a.question); got != a.meanwhile {
		t.Errorf("%s: changed, %s is %s, want %s", a.way, a.question, got, a.meanwhile)
	}
	h.Right(t)
	done := h.asking(t)
	results := h.ask(t, &attunev1.ManageResponse{RequestId: "undo", Request: &attunev1.ManageResponse_Undo{
		Undo: &attunev1.UndoChanges{ChangeIds: []string{a.way}},
	}})
	done()
	for _, r := range results {
		undone := r.GetOutcome() == attunev1.Outcome_OUTCOME_UNDONE
		// The image is known to have been replaced only since the change was made.
		gone := r.GetOutcome() == attunev1.Outcome_OUTCOME_GONE
		if undone == a.final && !gone {
			t.Errorf("undo: %v", r)
		}
	}
	if got := h.Ask(t, a.question); got != before {
		t.Errorf("%s: undone, %s is %s, want %s", a.way, a.question, got, before)
	}
	h.Right(t)
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
			if err := targets.ReadMemory(h.PID, m.Start, part); err != nil {
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
