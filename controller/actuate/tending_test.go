// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"context"
	"os"
	"testing"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What is done for as long as a change is in force takes the lock of the process. Who
// undoes one change of a process that has ended ends that of all others, too, and must
// not hold the lock then.
func TestUndoEndsAllTendingsOfAnEndedProcess(t *testing.T) {
	feigned := &actuatetest.Feigned{Tend: func(ctx context.Context, process access.Process) {
		<-ctx.Done()
		process.Lock()
		defer process.Unlock()
	}}
	a := actuate.New(actuate.Options{Journal: actuatetest.MustJournal(t, t.TempDir()), Kinds: feigned.Kinds()})
	process := actuatetest.MustProcess(t, os.Getpid())
	for _, id := range []string{"first", "second"} {
		actuatetest.MustApply(t, a, process, &attunev1.Change{Id: id, Action: actuatetest.Setting(id, 1)})
	}
	process.Ended = true
	undone := make(chan *attunev1.ActionResult, 1)
	go func() { undone <- a.Undo(context.Background(), "first") }()
	if got := patience.Receive(t, "an undo that returns", undone); got.GetOutcome() != attunev1.Outcome_OUTCOME_GONE {
		t.Errorf("undo: %v", got)
	}
	if left := a.Applied(); len(left) > 0 {
		t.Errorf("in force: %v", left)
	}
}
