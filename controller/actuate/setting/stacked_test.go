// SPDX-License-Identifier: Apache-2.0

package setting

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// mustUndo undoes a change.
func mustUndo(t *testing.T, a *actuate.Actuator, id string) {
	t.Helper()
	if u := a.Undo(t.Context(), id); u.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Errorf("undo %s: %v", id, u)
	}
}

// decays is a program with jemalloc, changed by a controller whose journal is in the folder.
type decays struct {
	*targets.Target
	process    *actuatetest.Process
	controller *actuate.Actuator
	journal    *actuate.Journal
	dir        string
}

func startDecays(t *testing.T) *decays {
	t.Helper()
	targets.NeedLibrary(t, "libjemalloc.so.2", "libjemalloc2")
	target := targets.Start(t, targets.Build(t, "../../testdata/settings.c", "-Wl,--no-as-needed", "-l:libjemalloc.so.2"))
	d := &decays{Target: target, process: actuatetest.MustProcess(t, target.PID), dir: t.TempDir()}
	d.journal = actuatetest.MustJournal(t, d.dir)
	t.Cleanup(func() { _ = d.journal.Close() }) // it may be closed
	d.controller = actuate.New(actuate.Options{Journal: d.journal, Kinds: Kinds(nil)})
	return d
}

func (d *decays) change(t *testing.T, a *actuate.Actuator, id string, milliseconds int64) {
	t.Helper()
	actuatetest.MustApply(t, a, d.process, &attunev1.Change{Id: id, Action: actuatetest.Setting("jemalloc.dirty_decay_ms", milliseconds)})
}

// has wants the whole and an arena to go by a value.
func (d *decays) has(t *testing.T, want string) {
	t.Helper()
	for _, question := range []string{"mallctl arenas.dirty_decay_ms", "mallctl arena.0.dirty_decay_ms"} {
		if got := d.Ask(t, question); got != want {
			t.Errorf("%s is %s, want %s", question, got, want)
		}
	}
}

// Whichever of several changes that calls have made is undone first, the others stay, and the
// last one gives back what was there before all of them.
func TestUndoBelowLaterChanges(t *testing.T) {
	d := startDecays(t)
	a := d.controller
	d.change(t, a, "c1", 0)
	d.change(t, a, "c2", 1000)
	d.change(t, a, "c3", 0)
	d.change(t, a, "c4", 500)
	mustUndo(t, a, "c1")
	d.has(t, "500")
	if told := a.InForce(); len(told) != 3 || told[0].Old != "10000" && told[2].Old != "10000" {
		t.Errorf("in force: %+v", told)
	}
	mustUndo(t, a, "c4")
	d.has(t, "0")
	mustUndo(t, a, "c3")
	d.has(t, "1000")
	mustUndo(t, a, "c2")
	d.has(t, "10000")
	d.change(t, a, "c1", 0)
	d.change(t, a, "same", 0)
	mustUndo(t, a, "c1")
	d.has(t, "0")
	mustUndo(t, a, "same")
	d.has(t, "10000")
	d.change(t, a, "c1", 0)
	d.change(t, a, "c2", 1000)
	mustUndo(t, a, "c1")
	if err := d.journal.Close(); err != nil { // it ends without undoing
		t.Fatal(err)
	}
	if restored, err := Kinds(nil).Restore(d.dir); err != nil || len(restored) != 1 || restored[0].Err != nil {
		t.Errorf("restored %v, %v", restored, err)
	}
	d.has(t, "10000")
}

// A value that is set by hand on top of a controller's gives back what was there before both.
func TestByHandOnTopOfAController(t *testing.T) {
	d := startDecays(t)
	d.change(t, d.controller, "c1", 0)
	byHand(t, d.dir, func(a *actuate.Actuator, id string) { d.change(t, a, id, 1000) })
	if u := d.controller.Undo(t.Context(), "c1"); u.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED || len(d.controller.Applied()) > 0 {
		t.Errorf("the controller's change is not given up: %v", u)
	}
	d.has(t, "1000")
	undoByHand(t, d.dir, "10000")
	d.has(t, "10000")
}

// byHand makes a change by a command, of which it is the first one.
func byHand(t *testing.T, dir string, change func(a *actuate.Actuator, id string)) {
	t.Helper()
	k, err := Kinds(nil).OpenKept(patience.Context(t), dir, "node")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	change(actuate.New(actuate.Options{Journal: k.Journal, Kinds: Kinds(nil)}), k.NextID())
}

// undoByHand undoes all that was changed by hand, which is listed with an old value.
func undoByHand(t *testing.T, dir, old string) {
	t.Helper()
	if changes, err := Kinds(nil).Changes(dir); err != nil || len(changes) != 1 || changes[0].Old != old || changes[0].Where == "" {
		t.Errorf("listed: %+v, %v", changes, err)
	}
	k, err := Kinds(nil).OpenKept(patience.Context(t), dir, "node")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if restored, err := k.UndoAll(); err != nil || len(restored) != 1 || restored[0].Err != nil {
		t.Errorf("restored %+v, %v", restored, err)
	}
}

// A stream keeps a change as long as a later one has its buffer, and then gets its own one back.
func TestUndoBelowALaterStreamChange(t *testing.T) {
	w := startWriter(t, "line")
	apply := func(a *actuate.Actuator, id, what string, value *attunev1.Value) {
		t.Helper()
		actuatetest.MustApply(t, a, w.Process, &attunev1.Change{Id: id, Action: w.action(t, what, value)})
	}
	state := func(want string) {
		t.Helper()
		if got := w.Ask(t, "state"); got != want {
			t.Errorf("the stream is %q, want %q", got, want)
		}
	}
	dir := t.TempDir()
	journal := actuatetest.MustJournal(t, dir)
	defer journal.Close()
	a := actuate.New(actuate.Options{Journal: journal, Kinds: Kinds(nil)})
	apply(a, "mode", "mode", access.TextValue("full"))
	apply(a, "size", "size", access.Integer(70000))
	if u := a.Undo(t.Context(), "mode"); u.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED || len(a.Applied()) != 2 {
		t.Errorf("undone below a later change: %v", u)
	}
	state("70000")
	mustUndo(t, a, "size")
	state("4096")
	var hand *actuate.Actuator
	byHand(t, dir, func(a *actuate.Actuator, id string) {
		hand = a
		apply(a, id, "size", access.Integer(70000))
	})
	if u := a.Undo(t.Context(), "mode"); u.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED || len(a.Applied()) > 0 {
		t.Errorf("the controller's change is not given up: %v", u)
	}
	undoByHand(t, dir, "line, 3000 bytes")
	state("line 3000")
	mustEndTending(t, hand)
	w.complete(t)
}

// memoryOf is how much memory a program has mapped, as the kernel says it.
func memoryOf(t *testing.T, pid int) string {
	t.Helper()
	status := files.Read(t, fmt.Sprintf("/proc/%d/status", pid))
	_, size, _ := strings.Cut(string(status), "VmSize:")
	size, _, _ = strings.Cut(size, "\n")
	return size
}

// A change that cannot be written down leaves no buffer in the program.
func TestStreamWithoutJournal(t *testing.T) {
	w := startWriter(t, "line")
	before := memoryOf(t, w.PID)
	if err := w.Kept.Close(); err != nil {
		t.Fatal(err)
	}
	if r := w.change(t, "size", "size", access.Integer(1<<20)); r.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED || !strings.Contains(r.GetReason(), os.ErrClosed.Error()) {
		t.Errorf("without a journal: %v", r)
	}
	if after := memoryOf(t, w.PID); after != before {
		t.Errorf("the program has%s mapped, want%s", after, before)
	}
	w.complete(t)
}

// TestUnmappedByNoJournal: where a stream has its old buffer, a record of a journal does not tell
// whether the new one is still mapped: something of the program's may be there.
func TestUnmappedByNoJournal(t *testing.T) {
	w := startWriter(t, "line")
	fd, err := strconv.Atoi(w.Ask(t, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := openStream(w.Process, fd)
	if err != nil {
		t.Fatal(err)
	}
	has := s.state.buffering()
	page := uint64(os.Getpagesize())
	there := buffering{Mode: fullBuffer, Base: has.Base / page * page, Size: page}
	r := &changedStream{FD: fd, Address: s.state.address, LibcInode: s.libc.Inode, LibcBias: s.libc.Bias, Old: has, New: there}
	if err := r.TakeBack(t.Context(), actuate.Changed{Process: w.Process}); err != nil {
		t.Error(err)
	}
	w.Ask(t, "line")
	w.complete(t)
}
