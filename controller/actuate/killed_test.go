// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What TestKilledCommand is told by its environment.
const (
	killAt  = "ATTUNE_TEST_KILL_AT" // number of the step of the journal
	keptDir = "ATTUNE_TEST_KEPT"
	first   = "ATTUNE_TEST_FIRST" // the processes
	second  = "ATTUNE_TEST_SECOND"
)

// changesOf are changes of every kind that leaves something in a process.
func changesOf(id int, process access.Process) (items []actuate.Item) {
	function := func(name string) *attunev1.Function { return &attunev1.Function{Object: "tuned", Symbol: name} }
	for _, action := range []*attunev1.Action{
		actuatetest.Set(actuatetest.TunedVariable("counter@tuned.c", access.Integer(5))),
		actuatetest.Set(actuatetest.TunedVariable("own", access.Integer(20))),
		{Kind: &attunev1.Action_Replace{Replace: &attunev1.ReplaceFunction{Old: function("plain"), New: function("twice")}}},
		{Kind: &attunev1.Action_Replace{Replace: &attunev1.ReplaceFunction{
			Old: &attunev1.Function{Object: "libc.so.6", Symbol: "time"}, New: function("frozen"),
		}}},
		{Kind: &attunev1.Action_Parameter{Parameter: &attunev1.ChangeParameter{Function: function("half"), Value: actuatetest.Decimal(9)}}},
		{Kind: &attunev1.Action_System{System: &attunev1.SystemSetting{Name: "thread.policy", Value: access.TextValue("batch")}}},
		actuatetest.Setting("glibc.stdio.size@1", 65536),
	} {
		id++
		items = append(items, actuate.Item{process, &attunev1.Change{Id: strconv.Itoa(id), Knob: "k", Action: action}})
	}
	return items
}

// TestKilledCommand is the process that TestKilled kills: it makes changes in
// two processes.
func TestKilledCommand(t *testing.T) {
	at, err := strconv.Atoi(os.Getenv(killAt))
	if err != nil {
		return // it runs in a process of its own
	}
	kept, err := all.OpenKept(t.Context(), os.Getenv(keptDir), "node")
	if err != nil {
		t.Fatal(err)
	}
	step := 0
	actuate.SetStep(kept.Journal, func(string) {
		if step++; step == at {
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	})
	a := actuate.New(actuate.Options{Journal: kept.Journal, Origin: "hand", Kinds: all})
	var items []actuate.Item
	for _, name := range []string{first, second} {
		pid, err := strconv.Atoi(os.Getenv(name))
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, changesOf(len(items), actuatetest.MustProcess(t, pid))...)
	}
	for _, r := range a.ApplySet(t.Context(), items, actuate.SetHooks{}) {
		if r.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
			t.Error(r)
		}
	}
	if at == 0 {
		_ = unix.Kill(os.Getpid(), unix.SIGKILL) // with everything in force
	}
}

// answers is what a program says of all that the changes change.
func answers(t *testing.T, i *actuatetest.Rig) string {
	t.Helper()
	p, err := unix.SchedGetAttr(i.PID, 0)
	if err != nil {
		t.Fatal(err)
	}
	now := "now"
	if i.Ask(t, "time") == "4711" {
		now = "frozen"
	}
	return fmt.Sprint(i.Ask(t, "counter"), "; ", i.Ask(t, "own"), "; ", i.Ask(t, "functions"), "; ", now, "; ", p.Policy, "; ", i.Ask(t, "buffer"))
}

// A command that is killed at any step of changing two processes leaves a
// journal that gives everything back, and two programs that go on.
func TestKilled(t *testing.T) {
	one, two := actuatetest.StartTuned(t, "testdata", all), actuatetest.StartTuned(t, "testdata", all)
	before := [2]string{answers(t, one), answers(t, two)}
	dir := t.TempDir()
	round := func(at int, after time.Duration) (finished bool) {
		t.Helper()
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledCommand$", "-test.v")
		cmd.Env = append(os.Environ(), killAt+"="+strconv.Itoa(at), keptDir+"="+dir,
			first+"="+strconv.Itoa(one.PID), second+"="+strconv.Itoa(two.PID))
		if after > 0 {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			killed := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
			killed.Env = cmd.Env
			cmd = killed
		}
		// The error may be that time is up although the process ended well.
		output, err := cmd.CombinedOutput()
		finished = cmd.ProcessState.Success()
		if !finished && cmd.ProcessState.Exited() {
			t.Fatalf("step %d: %v\n%s", at, err, output)
		}
		kept, err := all.OpenKept(t.Context(), dir, "node")
		if err != nil {
			t.Fatal(err)
		}
		ids, err := kept.IDs()
		if err != nil {
			t.Fatal(err)
		}
		restored, err := kept.Undo(ids)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range restored {
			if r.Err != nil {
				t.Errorf("step %d, after %v: change %s: %v", at, after, r.Change, r.Err)
			}
		}
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
		if now := [2]string{answers(t, one), answers(t, two)}; now != before {
			t.Fatalf("step %d, after %v: the programs say %q, before %q", at, after, now, before)
		}
		return finished
	}
	stride := 1 // where not each step is tried, which of them is up to chance
	if !targets.AllRounds() {
		stride = 5
	}
	steps := 1 + rand.IntN(stride)
	for ; !round(steps, 0); steps += stride {
		if steps > 200 {
			t.Fatal("it never ends")
		}
	}
	round(0, 0)
	if steps < 2*14 {
		t.Errorf("%d steps: the journal of 14 changes has two for each", steps)
	}
	for range targets.Fewer(10) {
		round(-1, time.Duration(20+rand.IntN(200))*time.Millisecond)
	}
}
