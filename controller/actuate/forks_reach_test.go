// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/confined"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A program whose forks cannot be told can be changed as any other.
func TestChangeWhereForksCannotBeTold(t *testing.T) {
	i := actuatetest.NewRig(t, targets.Start(t, targets.Build(t, "testdata/unseeded.c")), all)
	if lineage, err := access.LineageOf(i.Process); err == nil {
		t.Fatalf("it has random bytes: %v", lineage)
	}
	change := actuatetest.Set(&attunev1.SetVariable{Object: "unseeded", Symbol: "number", Value: access.Integer(8)})
	if r := i.Apply(t, "number", change); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED || i.Ask(t, "number") != "8" {
		t.Fatal(r)
	}
	if r := i.Actuator.Undo(t.Context(), "number"); r.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || i.Ask(t, "number") != "7" {
		t.Error(r)
	}
}

// setCounter changes the variable in one of the processes.
func setCounter(t *testing.T, i *actuatetest.Rig, process access.Process, id string, value int64) {
	t.Helper()
	actuatetest.MustApply(t, i.Actuator, process, &attunev1.Change{
		Id: id, Action: actuatetest.Set(actuatetest.TunedVariable("counter@tuned.c", access.Integer(value))),
	})
}

// A fork that must be left alone keeps the change in force, which is undone when that is over.
func TestForkThatMustBeLeftAlone(t *testing.T) {
	i := actuatetest.StartTuned(t, "testdata", all)
	alone := errors.New("it must be left alone")
	i.Actuator = actuate.New(actuate.Options{Journal: i.Kept.Journal, Kinds: all, Member: func(procid.Identity) (access.Process, error) { return nil, alone }})
	applyAll(t, i)
	fork(t, i)
	for id := range copiedChanges() {
		r := i.Actuator.Undo(t.Context(), id)
		if r.GetOutcome() != attunev1.Outcome_OUTCOME_FAILED || !strings.Contains(r.GetReason(), alone.Error()) || actuate.Left(i.Actuator, r) == nil {
			t.Errorf("undone: %v", r)
		}
	}
	if got := shows(t, i); got != changed {
		t.Errorf("the fork has %q, want %q", got, changed)
	}
	alone = nil
	for id := range copiedChanges() {
		if r := i.Actuator.Undo(t.Context(), id); r.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
			t.Error(r)
		}
	}
	if got := shows(t, i); got != unchanged {
		t.Errorf("the fork has %q, want %q", got, unchanged)
	}
	i.Ask(t, "leave")
	if got := shows(t, i); got != unchanged {
		t.Errorf("the process has %q, want %q", got, unchanged)
	}
}

// A fork that may not be touched is told of once, and the change is over. One whose image goes
// meanwhile is not told of.
func TestForksOutOfReach(t *testing.T) {
	for _, row := range []struct {
		name    string
		ends    bool
		outcome attunev1.Outcome
	}{
		{"it is another user's", false, attunev1.Outcome_OUTCOME_FAILED},
		{"it ends before its turn", true, attunev1.Outcome_OUTCOME_UNDONE},
	} {
		t.Run(row.name, func(t *testing.T) {
			i := actuatetest.StartTuned(t, "testdata", all)
			i.Actuator = actuate.New(actuate.Options{Journal: i.Kept.Journal, Kinds: all, Member: func(fork procid.Identity) (access.Process, error) {
				if row.ends {
					kill(t, fork)
				}
				return nil, fmt.Errorf("it %w", proc.ErrLeftAlone)
			}})
			if r := i.Apply(t, "counter", copiedChanges()["counter"]); r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
				t.Fatal(r)
			}
			fork(t, i)
			r := i.Actuator.Undo(t.Context(), "counter")
			told := strings.Contains(r.GetReason(), proc.ErrLeftAlone.Error())
			if r.GetOutcome() != row.outcome || told == row.ends || len(i.Actuator.Applied()) > 0 {
				t.Errorf("%v; in force: %q", r, i.Actuator.Applied())
			}
		})
	}
}

// A fork is found where kcmp(2) is forbidden, as by the filter of most containers, and where it has
// the pid of the image that has ended.
func TestForksThatTheKernelDoesNotTell(t *testing.T) {
	i := actuatetest.StartTuned(t, "testdata", all)
	lineage, err := access.LineageOf(i.Process)
	if err != nil {
		t.Fatal(err)
	}
	awaitTick(t, i.PID)
	child := fork(t, i)
	ended := i.Process.Identity()
	ended.PID = child
	look := func(name string, image procid.Identity) {
		found, err := new(access.Forks).Of(image, lineage)
		if !slices.ContainsFunc(found, func(fork procid.Identity) bool { return fork.PID == child }) || err != nil {
			t.Errorf("%s: found %v, %v, want process %d", name, found, err, child)
		}
	}
	look("pid used again", ended)
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with its filter
		confined.MustRefuse(t, unix.SYS_KCMP)
		look("kcmp forbidden", i.Process.Identity())
	}()
	<-done
}

// Who asks one look again gets the forks of then, who asks anew those of now, and there are none of
// an image of another boot.
func TestForksByLook(t *testing.T) {
	i := actuatetest.StartTuned(t, "testdata", all)
	lineage, err := access.LineageOf(i.Process)
	if err != nil {
		t.Fatal(err)
	}
	var look access.Look
	var forks access.Forks
	image := i.Process.Identity()
	elsewhere := image
	elsewhere.BootID = "another"
	count := func(find func(procid.Identity, access.Lineage) ([]procid.Identity, error), image procid.Identity, want int) {
		t.Helper()
		if found, err := find(image, lineage); len(found) != want || err != nil {
			t.Errorf("found %v, %v, want %d", found, err, want)
		}
	}
	for n := range 2 {
		fork(t, i)
		count(look.Of, image, 1)
		count(forks.Of, image, n+1)
		count(forks.Of, elsewhere, 0)
	}
}

// awaitTick waits until the kernel's clock of starts has gone on since a process started.
func awaitTick(t *testing.T, pid int) {
	t.Helper()
	stat, err := procid.ReadStat(pid)
	if err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "the next tick", func() bool { return clock.SinceBoot() > time.Duration(stat.StartTicks+1)*procid.Tick })
}
