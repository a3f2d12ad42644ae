// SPDX-License-Identifier: Apache-2.0

package actuate

import (
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

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// die lets go of a journal as the kernel does when its controller is killed.
func die(t *testing.T, j *Journal) {
	t.Helper()
	if err := j.file.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t *testing.T, dir string) *Journal {
	t.Helper()
	j, err := OpenJournal(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func mustOpenChanges(t *testing.T, path string) []string {
	t.Helper()
	open, err := newUndos{}.openChanges(path)
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
	j := mustOpen(t, t.TempDir())
	var identity procid.Identity
	if err := j.begin("1", "k", identity, &Plan{}); err != nil {
		t.Fatal(err)
	}
	info, err := j.file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	onFullDisk(t, info.Size()+20, func() { err = j.begin("2", "k", identity, &Plan{}) })
	if !errors.Is(err, unix.EFBIG) {
		t.Fatalf("written to a full disk: %v", err)
	}
	if err := j.begin("3", "k", identity, &Plan{}); err != nil {
		t.Fatal(err)
	}
	if open := mustOpenChanges(t, j.file.Name()); !slices.Equal(open, []string{"1", "3"}) {
		t.Errorf("open changes %v", open)
	}
}

// onFullDisk does something while no file can grow beyond a size.
func onFullDisk(t *testing.T, size int64, do func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(unix.SIGXFSZ)
	defer signal.Reset(unix.SIGXFSZ)
	full := unix.Rlimit{Cur: uint64(size), Max: before.Max}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &full); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
	}()
	do()
}

// A controller that starts while another one looks for journals keeps its own.
func TestJournalsOfControllersThatStartTogether(t *testing.T) {
	dir := t.TempDir()
	var group sync.WaitGroup
	for n := range 4 {
		group.Go(func() {
			for range 200 {
				if _, err := (Kinds{}).Restore(dir); err != nil {
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
	j := mustOpen(t, dir)
	if err := j.begin("1", "k", procid.Identity{BootID: "another", PID: 1}, &Plan{}); err != nil {
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
	if restored, err := (Kinds{}).Restore(dir); err != nil || len(restored) != 0 {
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
	journal := mustOpen(t, dir)
	identity, err := procid.Of(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	p := access.ProcessOf(identity)
	found, err := access.Lookup(p, "variables", "number", objfile.Variable)
	if err != nil {
		t.Fatal(err)
	}
	number, err := access.WordAt(p, found.Image, found.Address, "number", 4, access.Integer(8))
	if err != nil {
		t.Fatal(err)
	}
	unreadable := access.Word{
		What: "nothing", ImageInode: found.Image.Inode, ImageBias: found.Image.Bias,
		Address: 8, Old: []byte{1}, New: []byte{2},
	}
	for _, change := range []struct {
		id   string
		undo Undos
	}{{"number", UndoWords([]access.Word{number})}, {"broken", UndoWords([]access.Word{unreadable})}, {"stays", Undos{new(staying)}}} {
		if err := journal.begin(change.id, "k", identity, &Plan{Undo: change.undo}); err != nil {
			t.Fatal(err)
		}
	}
	if err := access.WriteWord(p, number); err != nil {
		t.Fatal(err)
	}
	die(t, journal)
	kinds := Kinds{Undos: []func() Undo{func() Undo { return new(staying) }}}
	for _, want := range [][]string{{"stays", "broken", "number"}, {"broken"}} {
		restored, err := kinds.Restore(dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range restored {
			got = append(got, r.Change)
			switch r.Change {
			case "stays":
				if !errors.Is(r.Err, errStays) {
					t.Errorf("what stays: %v", r.Err)
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

// staying is the undo of what is never taken back.
type staying struct{}

const errStays = access.Final("it stays")

func (*staying) Kind() string                            { return "staying" }
func (*staying) TakeBack(context.Context, Changed) error { return errStays }
func (*staying) Overlaps(Undo, bool) bool                { return false }
func (*staying) About(Changed) About                     { return About{} }

// onTop is the undo of something by name. It notes whether it was asked.
type onTop struct {
	of    string
	err   error
	asked bool
}

func (*onTop) Kind() string { return "onTop" }

func (u *onTop) TakeBack(context.Context, Changed) error {
	u.asked = true
	return u.err
}

func (u *onTop) Overlaps(other Undo, _ bool) bool {
	o, ok := other.(*onTop)
	return ok && o.of == u.of
}

func (*onTop) About(Changed) About { return About{} }

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
		err := below.restore(record{Change: step.name, Process: &self, Undo: Undos{&step.undo}}, nil)
		if step.undo.asked != step.want {
			t.Errorf("%s: asked: %v, want %v", step.name, step.undo.asked, step.want)
		}
		if (err == nil) != (step.stay == "") || err != nil && !strings.Contains(err.Error(), step.stay) {
			t.Errorf("%s: %v, want %q", step.name, err, step.stay)
		}
	}
}

func TestFinalIsEveryPart(t *testing.T) {
	others := fmt.Errorf("x: %w", access.ErrChangedByOthers)
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"one":         {others, true},
		"both":        {errors.Join(others, errStays), true},
		"one may do":  {errors.Join(others, proc.ErrPermission), false},
		"nested":      {errors.Join(errors.Join(proc.ErrPermission, others)), false},
		"particulars": {errors.Join(fmt.Errorf("%w: %w", access.ErrChangedByOthers, proc.ErrPermission)), true},
	} {
		if got := final(test.err); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
