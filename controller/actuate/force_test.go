// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestAmendWhileOthersLook: the undo of a change is replaced while another process's
// changes are asked for later ones, which look at all (under the race detector).
func TestAmendWhileOthersLook(t *testing.T) {
	journal, err := OpenJournal(t.TempDir(), "1")
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	f := &force{journal: journal, applied: make(map[string]*appliedChange)}
	one, other := access.ProcessOf(procid.Identity{PID: 1}), access.ProcessOf(procid.Identity{PID: 2})
	for id, process := range map[string]access.Process{"first": one, "elsewhere": other} {
		f.enter(&attunev1.Change{Id: id}, process, &Plan{Undo: UndoWords([]access.Word{{Address: 8}})}, time.Now())
	}
	f.enter(&attunev1.Change{Id: "later"}, one, &Plan{Undo: UndoWords([]access.Word{{Address: 8}})}, time.Now())
	var looking sync.WaitGroup
	looking.Go(func() {
		for range 100 {
			f.laterHas("elsewhere", Changed{Process: other}.alsoWrites(16))
		}
	})
	for range 100 {
		found, err := f.amendNext("first", Changed{Process: one}.alsoWrites(8), func(u Undo) Undo { return u })
		if !found || err != nil {
			t.Fatalf("found %v, error %v, want the later change", found, err)
		}
	}
	looking.Wait()
}

// ofRanks is an undo that changes have in common.
type ofRanks struct{ job string }

func (ofRanks) Kind() string                            { return "ranks" }
func (ofRanks) TakeBack(context.Context, Changed) error { return nil }
func (ofRanks) Overlaps(Undo, bool) bool                { return false }
func (ofRanks) About(Changed) About                     { return About{} }
func (u ofRanks) SameAs(other Undo) bool                { return u == other }

// TestRanksAreNotUndoneApart: what is undone in several processes together is not beside
// another undo in one of them.
func TestRanksAreNotUndoneApart(t *testing.T) {
	f := &force{applied: make(map[string]*appliedChange)}
	processes := map[int]access.Process{}
	enter := func(id string, pid int, undo Undo) {
		if processes[pid] == nil {
			processes[pid] = access.ProcessOf(procid.Identity{PID: pid})
		}
		f.enter(&attunev1.Change{Id: id}, processes[pid], &Plan{Undo: Undos{undo}}, time.Now())
	}
	enter("own of 1", 1, UndoWords([]access.Word{{Address: 8}})[0])
	enter("own of 2", 2, UndoWords([]access.Word{{Address: 8}})[0])
	enter("rank 1", 1, ofRanks{"a"})
	enter("other job", 3, ofRanks{"b"})
	enter("rank 2", 2, ofRanks{"a"})
	if got := fmt.Sprintf("%q", f.apart(append(f.ids(), "gone"))); got != `[["rank 2" "rank 1" "own of 2" "own of 1"] ["other job"] ["gone"]]` {
		t.Errorf("undone apart: %s", got)
	}
}
