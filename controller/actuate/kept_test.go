// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Two commands at once wait for each other; nothing gets lost.
func TestKeptIsLocked(t *testing.T) {
	self, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	k := openKept(t, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := (Kinds{}).OpenKept(ctx, dir, "node"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, want to have waited", err)
	}
	done := make(chan string, 4)
	for i := range 4 {
		go func() {
			one := openKept(t, dir)
			defer one.Close()
			id := one.NextID()
			err := one.append(record{Op: "begin", Change: id, Knob: fmt.Sprint(i), Process: &self})
			if err != nil {
				t.Error(err)
			}
			done <- id
		}()
	}
	k.Close()
	ids := map[string]bool{}
	for range 4 {
		ids[<-done] = true
	}
	if changes, err := (Kinds{}).Changes(dir); err != nil || len(changes) != 4 || len(ids) != 4 {
		t.Errorf("%d ids, changes %v, %v", len(ids), changes, err)
	}
}

// A process that ended drops its changes; half a line does no harm.
func TestKeptOfTheDead(t *testing.T) {
	self, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	dead := self
	dead.StartTicks-- // the pid is another's by now
	k := openKept(t, dir)
	id := k.NextID()
	if err := k.append(record{Op: "begin", Change: id, Process: &dead}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.file.WriteString(`{"op":"begin","change":"9`); err != nil {
		t.Fatal(err)
	}
	k.Close()
	if changes, err := (Kinds{}).Changes(dir); err != nil || len(changes) != 0 {
		t.Errorf("%v, %v", changes, err)
	}
	k = openKept(t, dir)
	defer k.Close()
	data, err := os.ReadFile(k.path)
	if err != nil || strings.Count(string(data), "\n") != 1 || strings.Contains(string(data), "begin") {
		t.Errorf("journal has %q, %v", data, err)
	}
	if k.NextID() == id {
		t.Error("an id was given twice")
	}
}

// A full disk refuses new changes, and keeps nobody from taking back those that were made.
func TestKeptOnAFullDisk(t *testing.T) {
	self, err := procid.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var undo *onTop // the last one that was read
	known := Kinds{Undos: []func() Undo{func() Undo { undo = new(onTop); return undo }}}
	dir := t.TempDir()
	k := openKept(t, dir)
	id := k.NextID()
	if err := k.begin(id, "k", self, &Plan{Undo: Undos{new(onTop)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.file.WriteString(`{"op":"begin","change":"9`); err != nil {
		t.Fatal(err)
	}
	k.Close()
	onFullDisk(t, 10, func() {
		if k, err = known.OpenKept(patience.Context(t), dir, "node"); err != nil {
			t.Fatal(err)
		}
		if err := k.begin(k.NextID(), "k", self, &Plan{}); !errors.Is(err, unix.EFBIG) {
			t.Errorf("one more change: %v", err)
		}
		done, err := k.Undo([]string{id})
		if err != nil || len(done) != 1 || !errors.Is(done[0].Err, unix.EFBIG) || !undo.asked {
			t.Errorf("undone %+v, %v", done, err)
		}
	})
	defer k.Close()
	if _, err := os.Lstat(k.path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was begun of another journal: %v", err)
	}
	done, err := k.Undo([]string{id})
	if err != nil || len(done) != 1 || done[0].Err != nil {
		t.Fatalf("undone with room again: %+v, %v", done, err)
	}
	if ids, err := k.IDs(); err != nil || len(ids) > 0 {
		t.Errorf("still in force: %v, %v", ids, err)
	}
}

func openKept(t *testing.T, dir string) *Kept {
	t.Helper()
	k, err := (Kinds{}).OpenKept(patience.Context(t), dir, "node")
	if err != nil {
		t.Fatal(err)
	}
	return k
}
