// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"slices"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustChange makes a change that is named as what it sets.
func (w *writer) mustChange(t *testing.T, what string, value *attunev1.Value) {
	t.Helper()
	if r := w.change(t, what, what, value); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(r)
	}
}

// hasWritten says whether that is all that the program's file holds.
func (w *writer) hasWritten(t *testing.T, want string) bool {
	t.Helper()
	got := files.Read(t, w.out)
	return string(got) == want
}

// mustEndTending wants an Actuator to find that there is nothing left to see to.
func mustEndTending(t *testing.T, a *actuate.Actuator) {
	t.Helper()
	ctx := patience.Context(t)
	if a.Attend(ctx); ctx.Err() != nil {
		t.Error("the stream is tended for good")
	}
}

// Lines that a change holds back are seen soon also when a later change has given the stream
// another buffer, and when that is undone.
func TestStreamModeBelowASize(t *testing.T) {
	w := startWriter(t, "large")
	content := "0\n"
	seen := func(line string) {
		t.Helper()
		content += line + "\n"
		if got := w.Ask(t, "line"); got != "2 held" {
			t.Errorf("the line is not held back: %s", got)
		}
		patience.Until(t, "the line", func() bool { return w.hasWritten(t, content) })
	}
	w.mustChange(t, "mode", access.TextValue("full"))
	seen("1")
	w.mustChange(t, "size", access.Integer(64<<10))
	if got := w.Actuator.Tended(); !slices.Equal(got, []string{"mode", "size"}) {
		t.Errorf("tended: %v", got) // each change its own buffer
	}
	seen("2")
	mustUndo(t, w.Actuator, "size")
	seen("3")
	mustUndo(t, w.Actuator, "mode")
	if got := w.Ask(t, "state"); got != "line 131072" {
		t.Errorf("the stream is %s afterwards", got)
	}
	w.complete(t)
}

// Nobody tends a stream whose changes somebody else has undone, the later after the earlier.
func TestStreamUndoneByOthers(t *testing.T) {
	w := startWriter(t, "line")
	w.mustChange(t, "mode", access.TextValue("full"))
	w.mustChange(t, "size", access.Integer(70000))
	for _, id := range []string{"size", "mode"} {
		if err := w.TakeBackLeft(t, id); err != nil {
			t.Error(err)
		}
	}
	mustEndTending(t, w.Actuator)
	w.complete(t)
}

// A change of which the program has given up the buffer itself is dropped, also below a later one
// that has nothing to do with it.
func TestUndoOfAStreamThatTheProgramChanged(t *testing.T) {
	w := startWriter(t, "line")
	w.mustChange(t, "mode", access.TextValue("full"))
	w.Ask(t, "own")
	w.mustChange(t, "size", access.Integer(70000))
	if u := w.Actuator.Undo(t.Context(), "mode"); u.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED || !slices.Equal(w.Actuator.Applied(), []string{"size"}) {
		t.Errorf("%v, in force: %v", u, w.Actuator.Applied())
	}
	mustUndo(t, w.Actuator, "size")
	if got := w.Ask(t, "state"); got != "5000" {
		t.Errorf("the stream is %s afterwards", got)
	}
	w.complete(t)
}

// A buffer that the program has chosen since is its own: it holds back what it does, though the
// stream has the same FILE and the same descriptor.
func TestStreamWithABufferOfTheProgram(t *testing.T) {
	for _, does := range []string{"own", "reopen"} {
		t.Run(does, func(t *testing.T) {
			w := startWriter(t, "line")
			w.mustChange(t, "mode", access.TextValue("full"))
			w.Ask(t, does)
			if got := w.Ask(t, "line"); got != "2 held" {
				t.Errorf("the line is not held back: %s", got)
			}
			mustEndTending(t, w.Actuator)
			if !w.hasWritten(t, "0\n") {
				t.Error("what the program holds back was written")
			}
			w.complete(t)
		})
	}
}
