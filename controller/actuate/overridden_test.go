// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Somebody changes by hand what a change had set: theirs stays, and undoing does
// not touch it.
func TestOverridden(t *testing.T) {
	target, process := mustKeeper(t)
	journal := actuatetest.MustJournal(t, t.TempDir())
	defer journal.Close()
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	change := pipeChange(t, target, "c1", 100000)
	if result := a.Apply(t.Context(), process, change); result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatalf("%v", result)
	}
	if results := a.Overridden(); len(results) > 0 {
		t.Fatalf("nobody has changed anything, and there is %v", results)
	}
	pipe, err := os.Open(fmt.Sprintf("/proc/%d/fd/%d", target.PID, change.GetAction().GetSystem().GetOn()))
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if _, err := unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, 262144); err != nil {
		t.Fatal(err)
	}
	results := a.Overridden()
	if len(results) != 1 || results[0].GetOutcome() != attunev1.Outcome_OUTCOME_OVERRIDDEN || results[0].GetChangeId() != "c1" ||
		!strings.Contains(results[0].GetReason(), "is 262144, not 131072") {
		t.Fatalf("%v", results)
	}
	if results := a.Overridden(); len(results) > 0 || len(a.Applied()) > 0 {
		t.Errorf("it is told again: %v", results)
	}
	if result := a.Undo(t.Context(), "c1"); result.GetOutcome() != attunev1.Outcome_OUTCOME_GONE {
		t.Errorf("%v", result)
	}
	if got := pipeSize(t, target); got != "262144" {
		t.Errorf("the program has %s, want what was set by hand", got)
	}
}

// A later change of ours is not somebody else's: when it is undone, the first one
// is still in force, and can be.
func TestChangedAgain(t *testing.T) {
	target, process := mustKeeper(t)
	journal := actuatetest.MustJournal(t, t.TempDir())
	defer journal.Close()
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	for _, change := range []*attunev1.Change{pipeChange(t, target, "c1", 1<<17), pipeChange(t, target, "c2", 1<<18)} {
		if result := a.Apply(t.Context(), process, change); result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Fatalf("%v", result)
		}
	}
	if results := a.Overridden(); len(results) > 0 {
		t.Errorf("nobody else has changed anything, and there is %v", results)
	}
	for _, undone := range []struct{ id, left string }{{"c2", "131072"}, {"c1", "65536"}} {
		result := a.Undo(t.Context(), undone.id)
		if got := pipeSize(t, target); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || got != undone.left {
			t.Errorf("%v; the program has %s, want %s", result, got, undone.left)
		}
	}
}
