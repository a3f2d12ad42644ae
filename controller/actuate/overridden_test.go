// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Somebody changes by hand what a change had set: theirs stays, and undoing does
// not touch it.
func TestOverridden(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
	change := pipeChange(t, target, "c1", 100000)
	if result := a.Apply(t.Context(), process, change); result.GetOutcome() != attunev1.Outcome_OUTCOME_APPLIED {
		t.Fatalf("%v", result)
	}
	if results := a.Overridden(); len(results) > 0 {
		t.Fatalf("nobody has changed anything, and there is %v", results)
	}
	if _, err := unix.FcntlInt(mustOpenPipe(t, target, change).Fd(), unix.F_SETPIPE_SZ, 262144); err != nil {
		t.Fatal(err)
	}
	mustYield(t, a, "c1", "is 262144, not 131072")
	if result := a.Undo(t.Context(), "c1"); result.GetOutcome() != attunev1.Outcome_OUTCOME_GONE {
		t.Errorf("%v", result)
	}
	if got := pipeSize(t, target); got != "262144" {
		t.Errorf("the program has %s, want what was set by hand", got)
	}
}

// mustYield wants one change to be overridden, and gives it up.
func mustYield(t *testing.T, a *actuate.Actuator, id, reason string) {
	t.Helper()
	all := a.Overridden()
	if len(all) != 1 || all[0].ID != id || !strings.Contains(all[0].Reason, reason) {
		t.Fatalf("%v", all)
	}
	results := actuate.Yielded(a, all[0], a.Undo(t.Context(), all[0].ID))
	if len(results) != 1 || results[0].GetOutcome() != attunev1.Outcome_OUTCOME_OVERRIDDEN || results[0].GetChangeId() != id || results[0].GetReason() != all[0].Reason {
		t.Errorf("%v", results)
	}
	if all := a.Overridden(); len(all) > 0 || len(a.Applied()) > 0 {
		t.Errorf("it is told again: %v", all)
	}
}

// What somebody sets in one thread stays, and all others have what they had before.
func TestOverriddenInOneThread(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
	actuatetest.MustApply(t, a, process, systemChange("c1", "thread.policy", &attunev1.Value{Kind: &attunev1.Value_Text{Text: "batch"}}))
	tids, _, err := procid.AllThreads(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	own := tids[len(tids)-1]
	if err := unix.SchedSetAttr(own, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
		t.Fatal(err)
	}
	mustYield(t, a, "c1", "is idle, not batch")
	for _, tid := range tids {
		want := uint32(unix.SCHED_NORMAL)
		if tid == own {
			want = unix.SCHED_IDLE
		}
		if attr, err := unix.SchedGetAttr(tid, 0); err != nil || attr.Policy != want {
			t.Errorf("thread %d has policy %+v, %v, want %d", tid, attr, err, want)
		}
	}
}

// A later change of ours is not somebody else's: when it is undone, the first one
// is still in force, and can be.
func TestChangedAgain(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
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

// watched is a process that counts how often somebody looks which it is.
type watched struct {
	*actuatetest.Process
	looks int
}

func (w *watched) Identity() procid.Identity {
	w.looks++
	return w.Process.Identity()
}

// What the program has closed for good is not looked for again.
func TestNotLookedForWhenClosed(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
	w := &watched{Process: process}
	socket, _, _ := strings.Cut(target.Ask(t, "fds"), " ")
	fd, err := strconv.ParseInt(socket, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	change, on := systemChange("c1", "socket.tcp_nodelay", access.Integer(1)), int32(fd)
	change.GetAction().GetSystem().On = &on
	actuatetest.MustApply(t, a, w, change)
	look := func() int {
		w.looks = 0
		if all := a.Overridden(); len(all) > 0 {
			t.Errorf("overridden: %v", all)
		}
		return w.looks
	}
	if first, second := look(), look(); first == 0 || second == 0 {
		t.Error("nobody looks at what is open")
	}
	target.Ask(t, "other "+socket)
	if look() == 0 || look() > 0 {
		t.Error("what is closed is not looked for, or again and again")
	}
	if result := a.Undo(t.Context(), "c1"); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE {
		t.Error(result)
	}
}
