// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/procmem"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func mustApply(t *testing.T, a *Actuator, p Process, change *attunev1.Change) {
	t.Helper()
	if got := a.Apply(context.Background(), p, change); got.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatalf("apply %s: %v", change.GetId(), got)
	}
}

// die lets go of a journal as the kernel does when its controller is killed.
func die(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.file.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustOpenChanges(t *testing.T, path string) []string {
	t.Helper()
	open, err := all.openChanges(path)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(open))
	for i, r := range open {
		ids[i] = r.Change
	}
	return ids
}

// A full disk takes half a line. What is written when it has room again must
// not be lost with it: that change is made.
func TestJournalAfterAFullDisk(t *testing.T) {
	j := mustJournal(t, t.TempDir())
	var identity procid.Identity
	if err := j.begin("1", "k", identity, &plan{}); err != nil {
		t.Fatal(err)
	}
	info, err := j.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	full := unix.Rlimit{Cur: uint64(info.Size()) + 20, Max: before.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	err = j.begin("2", "k", identity, &plan{})
	if restore := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); restore != nil {
		t.Fatal(restore)
	}
	if !errors.Is(err, unix.EFBIG) {
		t.Fatalf("written to a full disk: %v", err)
	}
	if err := j.begin("3", "k", identity, &plan{}); err != nil {
		t.Fatal(err)
	}
	if open := mustOpenChanges(t, j.file.Name()); !slices.Equal(open, []string{"1", "3"}) {
		t.Errorf("open changes %v", open)
	}
}

// A controller that starts while another one looks for journals keeps its own.
func TestJournalsOfControllersThatStartTogether(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for range 200 {
				if _, err := all.Restore(dir); err != nil {
					t.Error(err)
				}
				j, err := OpenJournal(dir, fmt.Sprint(n%2)) // also two with one pid
				if err != nil {
					t.Error(err)
					return
				}
				if !named(j.file, j.file.Name()) {
					t.Error("the journal was removed under its controller")
				}
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A home may be shared by nodes and containers: only they know whether the
// processes of their journals live.
func TestRestoreLeavesOtherNodesAlone(t *testing.T) {
	dir := t.TempDir()
	j := mustJournal(t, dir)
	if err := j.begin("1", "k", procid.Identity{BootID: "another", PID: 1}, &plan{}); err != nil {
		t.Fatal(err)
	}
	die(t, j)
	where, err := place()
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(j.file.Name(), where, "another."+where[strings.Index(where, ".")+1:], 1)
	if err := os.Rename(j.file.Name(), other); err != nil {
		t.Fatal(err)
	}
	if restored, err := all.Restore(dir); err != nil || len(restored) != 0 {
		t.Errorf("restored %v, %v", restored, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("the other node's journal: %v", err)
	}
}

// What could not be restored is tried again by the next controller.
func TestRestoreKeepsWhatFailed(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	dir := t.TempDir()
	journal := mustJournal(t, dir)
	p := mustProcess(t, target.PID)
	mustApply(t, New(Options{Journal: journal, Kinds: all}), p, set("number", 4, integer(8), nil))
	images, err := p.Images()
	if err != nil {
		t.Fatal(err)
	}
	unreadable := Word{
		What: "nothing", ImageInode: images[0].Inode, ImageBias: images[0].Bias,
		Address: 8, Old: []byte{1}, New: []byte{2},
	}
	if err := journal.begin("broken", "k", p.identity, &plan{undo: undoWords([]Word{unreadable})}); err != nil {
		t.Fatal(err)
	}
	if err := journal.begin("call", "k", p.identity, &plan{undo: undos{new(madeCall)}}); err != nil {
		t.Fatal(err)
	}
	die(t, journal)
	for _, want := range [][]string{{"call", "broken", "c-number"}, {"broken"}} {
		restored, err := all.Restore(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range restored {
			got = append(got, r.Change)
			switch r.Change {
			case "call":
				if !errors.Is(r.Err, ErrCallNotUndoable) {
					t.Errorf("a call: %v", r.Err)
				}
			case "broken":
				if r.Err == nil {
					t.Error("restored at an address that is not mapped")
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("restored %v, want %v", got, want)
		}
	}
	if number := target.Ask(t, "number"); number != "7" {
		t.Errorf("program sees %s, want 7", number)
	}
}

// onTop is the undo of something by name. It notes whether it was asked.
type onTop struct {
	of    string
	err   error
	asked bool
}

func (*onTop) kind() string { return "onTop" }

func (u *onTop) takeBack(context.Context, changed) error {
	u.asked = true
	return u.err
}

func (u *onTop) overlaps(other undo, _ bool) bool {
	o, ok := other.(*onTop)
	return ok && o.of == u.of
}

func (*onTop) about(changed) about { return about{} }

// What lies below a change that could not be taken back waits for it, and what lies
// below that one too: original values are given back in the order of their changes.
func TestRestoreWaitsForWhatIsOnTop(t *testing.T) {
	self, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var below undoing
	busy := errors.New("busy")
	for _, step := range []struct {
		name string
		undo onTop
		want bool // it is asked
		stay string
	}{
		{name: "fails", undo: onTop{of: "a", err: busy}, want: true, stay: "busy"},
		{name: "of another thing", undo: onTop{of: "b"}, want: true},
		{name: "below", undo: onTop{of: "a"}, stay: "change fails, which was made on top of it, stays"},
		{name: "below that", undo: onTop{of: "a"}, stay: "which was made on top of it, stays"},
	} {
		err := below.restore(record{Change: step.name, Process: &self, Undo: undos{&step.undo}})
		if step.undo.asked != step.want {
			t.Errorf("%s: asked: %v, want %v", step.name, step.undo.asked, step.want)
		}
		if (err == nil) != (step.stay == "") || err != nil && !strings.Contains(err.Error(), step.stay) {
			t.Errorf("%s: %v, want %q", step.name, err, step.stay)
		}
	}
}

// All malloc settings share the flag that ends glibc's own adjustment. In
// whatever order they are undone, it is back after the last, and not before.
func TestSharedWordIsRestoredLast(t *testing.T) {
	const flag = "libc.so.6:mp_.no_dyn_threshold"
	tests := []struct {
		name string
		undo []string // "" is the death of the controller, and Restore
	}{
		{"latest first", []string{"b", "a"}},
		{"latest last", []string{"a", "b"}},
		{"controller dies in between", []string{"a", ""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			target := targets.Start(t, targets.Build(t, "testdata/blocks.c"))
			dir := t.TempDir()
			journal := mustJournal(t, dir)
			a := New(Options{Journal: journal, Kinds: All(AllOptions{Hidden: mustHidden(t)})})
			p := mustProcess(t, target.PID)
			mustApply(t, a, p, &attunev1.Change{Id: "a", Action: setting("glibc.malloc.mmap_threshold", 1<<20)})
			mustApply(t, a, p, &attunev1.Change{Id: "b", Action: setting("glibc.malloc.trim_threshold", 1<<20)})
			words := *a.applied["a"].plan.undo[0].(*writtenWords)
			at := slices.IndexFunc(words, func(w Word) bool { return w.What == flag })
			for i, id := range test.undo {
				if id == "" {
					die(t, journal)
					if restored, err := all.Restore(dir); err != nil || len(restored) != 1 || restored[0].Err != nil {
						t.Errorf("restored %v, %v", restored, err)
					}
				} else if got := a.Undo(context.Background(), id); got.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
					t.Errorf("undo %s: %v", id, got)
				}
				now, want := make([]byte, 4), []byte{0, 0, 0, 0}
				if i == 0 {
					want[0] = 1
				}
				if err := procmem.Read(target.PID, words[at].Address, now); err != nil || !bytes.Equal(now, want) {
					t.Errorf("after undoing %q the flag is %v, want %v, %v", id, now, want, err)
				}
			}
		})
	}
}

func TestAppliedIsInTheOrderToUndo(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	a := New(Options{Journal: mustJournal(t, t.TempDir()), Kinds: all})
	p := mustProcess(t, target.PID)
	for i := range 20 {
		change := set("number", 4, integer(int64(i)), nil)
		change.Id = fmt.Sprint(i)
		mustApply(t, a, p, change)
	}
	for i, id := range a.Applied() {
		if id != fmt.Sprint(19-i) {
			t.Fatalf("order %v", a.Applied())
		}
	}
}

// What is executed while the controller stops is taken back: nobody would undo
// it.
func TestNothingStaysAfterStop(t *testing.T) {
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	a := New(Options{Journal: mustJournal(t, t.TempDir()), Kinds: all})
	a.Stop()
	got := a.Apply(context.Background(), mustProcess(t, target.PID), set("number", 4, integer(8), nil))
	if got.GetOutcome() != attunev1.Outcome_OUTCOME_REFUSED || !strings.Contains(got.GetReason(), "stops") {
		t.Errorf("apply: %v", got)
	}
	if number := target.Ask(t, "number"); number != "7" {
		t.Errorf("program sees %s, want 7", number)
	}
	if open := mustOpenChanges(t, a.options.Journal.file.Name()); len(open) != 0 {
		t.Errorf("open changes %v", open)
	}
}

func TestFinalIsEveryPart(t *testing.T) {
	others := fmt.Errorf("x: %w", ErrChangedByOthers)
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"one":        {others, true},
		"both":       {errors.Join(others, ErrCallNotUndoable), true},
		"one may do": {errors.Join(others, procmem.ErrPermission), false},
		"nested":     {errors.Join(errors.Join(procmem.ErrPermission, others)), false},
	} {
		if got := final(test.err); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
