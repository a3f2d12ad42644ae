// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"fmt"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestHandOver: what was kept outlives the controller, is not restored by the
// next one, and is undone by hand.
func TestHandOver(t *testing.T) {
	dir := t.TempDir()
	target := targets.Start(t, targets.Build(t, "testdata/variables.c"))
	before := target.Ask(t, "flag")
	journal := actuatetest.MustJournal(t, dir)
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	if r := a.Apply(t.Context(), actuatetest.MustProcess(t, target.PID), set("flag", 1, actuatetest.Truth(true), nil)); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatalf("apply: %v", r)
	}
	changed := target.Ask(t, "flag")
	if changed == before {
		t.Fatalf("nothing has changed: %s", changed)
	}
	kept, err := all.OpenKept(t.Context(), dir, "node")
	if err != nil {
		t.Fatal(err)
	}
	a.Stop()
	ids, err := a.HandOver(kept, func(string) bool { return true })
	if err != nil || len(ids) != 1 || len(a.Applied()) != 0 {
		t.Fatalf("handed over %v, %v; %v in force", ids, err, a.Applied())
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	if restored, err := all.Restore(dir); err != nil || len(restored) != 0 {
		t.Errorf("the next controller restored %v, %v", restored, err)
	}
	if now := target.Ask(t, "flag"); now != changed {
		t.Errorf("the program says %s, want %s", now, changed)
	}
	done, err := kept.Undo(ids)
	if err != nil || len(done) != 1 || done[0].Err != nil {
		t.Errorf("undo: %v, %v", done, err)
	}
	if now := target.Ask(t, "flag"); now != before {
		t.Errorf("the program says %s, want %s", now, before)
	}
	if err := kept.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHandOverWhatWasAmended: a change below one that is handed over is undone meanwhile, and
// leaves what was there before both to that.
func TestHandOverWhatWasAmended(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
	for id, bytes := range []int64{1 << 17, 1 << 18} {
		actuatetest.MustApply(t, a, process, pipeChange(t, target, fmt.Sprint("c", id+1), bytes))
	}
	kept, err := all.OpenKept(t.Context(), t.TempDir(), "node")
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	a.Stop()
	ids, err := a.HandOver(kept, func(id string) bool {
		if id == "c1" {
			mustUndo(t, a, target, "c1", "262144")
		}
		return id == "c2"
	})
	if err != nil || len(ids) != 1 {
		t.Fatalf("handed over %v, %v", ids, err)
	}
	done, err := kept.Undo(ids)
	if got := pipeSize(t, target); err != nil || len(done) != 1 || done[0].Err != nil || got != "65536" {
		t.Errorf("undo: %v, %v; the program has %s, want 65536", done, err, got)
	}
}
