// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// writer is testdata/streams.c, and the file that it writes.
type writer struct {
	*actuatetest.Rig
	out string
}

func startWriter(t *testing.T, mode string, env ...string) *writer {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	target := targets.Start(t, targets.Build(t, "../testdata/streams.c"), append(env, "OUT="+out, "MODE="+mode)...)
	return &writer{actuatetest.NewRig(t, target, Kinds(nil)), out}
}

// action sets a setting of the stream that the program writes.
func (w *writer) action(t *testing.T, what string, value *attunev1.Value) *attunev1.Action {
	t.Helper()
	return &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{
		Name: "glibc.stdio." + what + "@" + w.Ask(t, "fd"), Value: value,
	}}}
}

// change sets a setting of the stream.
func (w *writer) change(t *testing.T, id, what string, value *attunev1.Value) *attunev1.ActionResult {
	t.Helper()
	return w.Apply(t, id, w.action(t, what, value))
}

// complete ends the program and compares every byte that it has written.
func (w *writer) complete(t *testing.T) {
	t.Helper()
	n, err := strconv.Atoi(w.Ask(t, "lines"))
	if err != nil {
		t.Fatal(err)
	}
	w.EndWell(t)
	got := files.Read(t, w.out)
	var want bytes.Buffer
	for i := range n {
		want.WriteString(strconv.Itoa(i))
		want.WriteByte('\n')
	}
	if !bytes.Equal(got, want.Bytes()) {
		at := 0
		for at < min(len(got), want.Len()) && got[at] == want.Bytes()[at] {
			at++
		}
		t.Errorf("%d bytes were written, want %d; they differ at %d: %q", len(got), want.Len(), at, got[at:min(at+80, len(got))])
	}
}

// While a program writes without pause its stream is given buffers of many
// sizes, and its own one back; no byte is lost, late or written twice.
func TestStreamSizes(t *testing.T) {
	for _, row := range []struct{ mode, state, thread string }{
		{"full", "4096", ""}, {"line", "line 3000", ""}, {"full", "4096", "THREAD=1"}, {"line", "line 3000", "THREAD=1"},
	} {
		t.Run(row.mode+row.thread, func(t *testing.T) {
			w := startWriter(t, row.mode, row.thread)
			if got := w.Ask(t, "state"); got != row.state {
				t.Fatalf("the stream is %s at first", got)
			}
			w.Ask(t, "go")
			sizes := []int64{1 << 20, 512, 70000}
			if testing.Short() {
				sizes = sizes[:1]
			}
			for _, size := range sizes {
				r := w.change(t, "c", "size", access.Integer(size))
				if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || r.GetNewValue().GetInteger() != size || r.GetWay() != string(access.WayStopped) {
					t.Fatal(r)
				}
				if got, want := w.Ask(t, "state"), strings.Replace(strings.Replace(row.state, "4096", strconv.FormatInt(size, 10), 1), "3000", strconv.FormatInt(size, 10), 1); got != want {
					t.Errorf("the stream is %s, want %s", got, want)
				}
				if u := w.Actuator.Undo(t.Context(), "c"); u.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
					t.Fatal(u)
				}
				if got := w.Ask(t, "state"); got != row.state {
					t.Errorf("the stream is %s afterwards", got)
				}
			}
			w.Ask(t, "stop")
			w.complete(t)
		})
	}
}

// A stream is given its own buffer back while others come and go, and where another one has
// its descriptor.
func TestStreamAmongOthers(t *testing.T) {
	w := startWriter(t, "full", "CHURN=1")
	undo := func() {
		t.Helper()
		if u := w.Actuator.Undo(t.Context(), "c"); u.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
			t.Fatal(u)
		}
		if got := w.Ask(t, "state"); got != "4096" {
			t.Fatalf("the stream is %s afterwards", got)
		}
	}
	change := func() {
		t.Helper()
		if r := w.change(t, "c", "size", access.Integer(70000)); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatal(r)
		}
	}
	for range 10 {
		change()
		undo()
	}
	change()
	w.Ask(t, "second")
	undo()
	w.complete(t)
}

// Lines that a stream holds back are seen soon, and what a controller that was
// killed has left is undone from its journal.
func TestStreamMode(t *testing.T) {
	w := startWriter(t, "line")
	r := w.change(t, "mode", "mode", access.TextValue("full"))
	if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || r.GetOldValue().GetText() != "line" || r.GetNewValue().GetText() != "full" {
		t.Fatal(r)
	}
	if got := w.Actuator.Tended(); len(got) != 1 || got[0] != "mode" {
		t.Errorf("tended: %v", got)
	}
	if got := w.Ask(t, "line"); got != "2 held" {
		t.Errorf("the line is not held back: %s", got)
	}
	patience.Until(t, "the line", func() bool {
		content := files.Read(t, w.out)
		return string(content) == "0\n1\n"
	})
	w.Ask(t, "line")
	if err := w.TakeBackLeft(t, "mode"); err != nil {
		t.Error(err)
	}
	if got := w.Ask(t, "state"); got != "line 3000" {
		t.Errorf("the stream is %s afterwards", got)
	}
	w.Actuator.Attend(t.Context()) // ends by itself: the stream is another one
	if u := w.Actuator.Undo(t.Context(), "mode"); u.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Errorf("a second time: %v", u)
	}
	w.complete(t)
}

// An unbuffered stream is given a mode, then a size; the later goes first.
func TestStreamWithoutBuffer(t *testing.T) {
	w := startWriter(t, "none")
	if r := w.change(t, "size", "size", access.Integer(8192)); r.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(r.GetReason(), "not buffered") {
		t.Error(r)
	}
	if r := w.change(t, "mode", "mode", access.TextValue("line")); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(r)
	}
	if r := w.change(t, "size", "size", access.Integer(8192)); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatal(r)
	}
	if got := w.Ask(t, "state"); got != "line 8192" {
		t.Errorf("the stream is %s", got)
	}
	if u := w.Actuator.Undo(t.Context(), "mode"); u.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED {
		t.Errorf("undone below a later change: %v", u)
	}
	if u := w.Actuator.Undo(t.Context(), "size"); u.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Error(u)
	}
	w.complete(t)
}

func TestStreamRefusals(t *testing.T) {
	w := startWriter(t, "full")
	for _, row := range []struct {
		name   string
		value  *attunev1.Value
		reason string
	}{
		{"glibc.stdio.size@99", access.Integer(8192), "no stdio stream that writes to descriptor 99"},
		{"glibc.stdio.size@0", access.Integer(8192), "no stdio stream that writes to descriptor 0"},
		{"glibc.stdio.size@2", access.Integer(8192), "nothing has been written"},
		{"glibc.stdio.size@x", access.Integer(8192), "unknown setting"},
		{"glibc.stdio.size", access.Integer(1), "outside"},
		{"glibc.stdio.mode", access.TextValue("loud"), "full, line, none"},
		{"glibc.malloc.top_pad@1", access.Integer(1), "unknown setting"},
	} {
		r := w.Actuator.Apply(t.Context(), w.Process, &attunev1.Change{Id: "c", Action: &attunev1.Action{
			Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: row.name, Value: row.value}},
		}})
		if r.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(r.GetReason(), row.reason) {
			t.Errorf("%s: %v, want %q", row.name, r, row.reason)
		}
	}
	w.complete(t)
}

// Lines that are held back would change places with what somebody else writes.
func TestStreamOfOneWriter(t *testing.T) {
	const want = "writes to the same file"
	w := startWriter(t, "line", "OTHER=1")
	if r := w.change(t, "c", "mode", access.TextValue("full")); !strings.Contains(r.GetReason(), want) {
		t.Errorf("open a second time: %v", r)
	}
	w.complete(t)

	w = startWriter(t, "line")
	file, err := os.OpenFile(w.out, os.O_WRONLY|os.O_APPEND, 0) // this process is left out
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	beside := exec.Command("sleep", "600")
	beside.Stdout = file
	if err := beside.Start(); err != nil {
		t.Fatal(err)
	}
	if r := w.change(t, "c", "mode", access.TextValue("full")); !strings.Contains(r.GetReason(), want) {
		t.Errorf("with a process beside it: %v", r)
	}
	_ = beside.Process.Kill()
	_ = beside.Wait()
	if r := w.change(t, "c", "mode", access.TextValue("full")); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Errorf("alone: %v", r)
	}
	if u := w.Actuator.Undo(t.Context(), "c"); u.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Error(u)
	}
	w.complete(t)
}

// A program of GNU's calls _exit when it could not close its streams, and not to
// leave them as they are.
func TestExitsThatLoseNothing(t *testing.T) {
	for _, tt := range []struct{ called, want string }{
		{"_exit", "_exit"},
		{"__fpending _exit", ""},
		{"__fpending fork _exit execlp", "fork execlp"},
		{"__fpending", ""},
		{"", ""},
	} {
		if got := strings.Join(unclosed(strings.Fields(tt.called)), " "); got != tt.want {
			t.Errorf("of %q, %q forbid to hold lines back, want %q", tt.called, got, tt.want)
		}
	}
}

// TestNullIsKnown: /dev/null is told from other devices.
func TestNullIsKnown(t *testing.T) {
	for path, want := range map[string]bool{"/dev/null": true, "/dev/zero": false} {
		t.Run(path, func(t *testing.T) {
			file, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if s, err := sinkOf(os.Getpid(), int(file.Fd())); s.null != want || (err == nil) != want {
				t.Errorf("null %t, %v", s.null, err)
			}
		})
	}
}
