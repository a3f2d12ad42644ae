// SPDX-License-Identifier: Apache-2.0

package actuate

import (
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
