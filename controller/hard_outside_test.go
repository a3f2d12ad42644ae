// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// outside is a case that is hard because of what is done to the program, or what
// it does to itself, after Attune has come in.
type outside struct {
	name, program string
	arguments     []string
	// prepare makes it hard; hold and release do so for each action only. May be
	// nil.
	prepare, hold, release func(*testing.T, *hard)
	// applied are ways that serve all the same, refused those that do not, each
	// with a part of the reason. The others may or may not.
	applied []string
	refused map[string]string
	// omit are ways that are not tried.
	omit map[string]bool
}

// TestHardOutside: every action is answered, whatever is the matter with the
// program. What was applied is in force and can be taken back, what was not has
// a reason and has changed nothing, and the program goes on to its end.
func TestHardOutside(t *testing.T) {
	library := hardLibrary(t)
	stop := func(t *testing.T, h *hard) { h.signal(t, unix.SIGSTOP, 'T') }
	resume := func(t *testing.T, h *hard) { h.signal(t, unix.SIGCONT, 'S') }
	for _, row := range []outside{
		// Loading waits three times five seconds there.
		{name: "stopped", program: "plain", hold: stop, omit: map[string]bool{"ptrace at a safe place": !targets.AllRounds()}, release: resume,
			applied: []string{"memory write", "system call"}, refused: map[string]string{"DMLib at a safe point": "stopped"}},
		{name: "confined later", program: "forbids", arguments: []string{strconv.Itoa(unix.SYS_PRCTL), "later"},
			prepare: func(t *testing.T, h *hard) { h.Right(t) }, applied: []string{"memory write", "system call"}},
		{name: "deleted", program: "plain", prepare: deleteProgram,
			applied: []string{"memory write", "system call", "entry patch", "GOT slots", "DMLib at a safe point"}},
		{name: "executed again", program: "plain", prepare: executeAgain},
		{name: "executed again, memory shared", program: "shares", prepare: executeAgain},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := attachHard(t, row.program, exec.Command(targets.Program(t, row.program), row.arguments...))
			h.mustBeInside(t)
			if row.prepare != nil {
				row.prepare(t, h)
			}
			for _, action := range hardActions(library) {
				if !row.omit[action.way] {
					h.endured(t, row, action)
				}
			}
			h.leave(t)
			h.Finish(t)
		})
	}
}

// endured makes one change in such a case and looks at what came of it.
func (h *hard) endured(t *testing.T, row outside, a hardAction) {
	t.Helper()
	before := h.Ask(t, a.question)
	done := h.asking(t)
	if row.hold != nil {
		row.hold(t, h)
	}
	r := h.try(t, a)
	if row.release != nil {
		row.release(t, h)
	}
	done()
	applied := r.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED
	if reason, no := row.refused[a.way]; no && (applied || !strings.Contains(r.GetReason(), reason)) {
		t.Errorf("%s: %v, want a refusal with %q", a.way, r, reason)
	}
	for _, way := range row.applied {
		if way == a.way && (!applied || r.GetWay() != way) {
			t.Errorf("%s: %v, want it applied", way, r)
		}
	}
	if applied {
		h.takenBack(t, a, before)
		return
	}
	if got := h.Ask(t, a.question); got != before {
		t.Errorf("%s: refused, %s is %s, want %s", a.way, a.question, got, before)
	}
	h.Right(t)
}

// signal sends one and waits until the first thread is in a state.
func (h *hard) signal(t *testing.T, signal unix.Signal, state byte) {
	t.Helper()
	if err := unix.Kill(h.PID, signal); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, fmt.Sprintf("state %c", state), func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.PID))
		_, after, found := strings.Cut(string(stat), ") ")
		if err != nil || !found {
			t.Fatal(err)
		}
		return after[0] == state
	})
}

// deleteProgram removes the file that the program runs.
func deleteProgram(t *testing.T, h *hard) {
	t.Helper()
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", h.PID))
	if err := errors.Join(err, os.Remove(path)); err != nil {
		t.Fatal(err)
	}
}

// executeAgain has the program become itself again: what was placed in it is
// gone.
func executeAgain(t *testing.T, h *hard) {
	t.Helper()
	if err := h.Say("exec"); err != nil {
		t.Fatal(err)
	}
	h.Expect(t, "ready")
}

// TestHardEnd: what is asked of a program that has ended is answered.
func TestHardEnd(t *testing.T) {
	h := attachHard(t, "plain", exec.Command(targets.Program(t, "plain")))
	h.mustBeInside(t)
	h.Finish(t)
	for _, action := range hardActions(hardLibrary(t)) {
		if r := h.try(t, action); r.GetOutcome() == attunev1.Outcome_OUTCOME_APPLIED {
			t.Errorf("%s: %v, and it has ended", action.way, r)
		}
	}
	h.attached.Leave(t.Context())
}
