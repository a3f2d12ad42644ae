// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// sharer is another process that has the pipe, and tells when somebody wants its lock.
type sharer struct {
	*actuatetest.Process
	wanted chan struct{}
}

func (s sharer) Lock() {
	s.wanted <- struct{}{}
	s.Process.Lock()
}

// A process may end below a change of the pipe that another one has, in which something is being
// changed.
func TestEndedBelowAnotherProcess(t *testing.T) {
	target, process := mustKeeper(t)
	journal := actuatetest.MustJournal(t, t.TempDir())
	defer journal.Close()
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	first, second := pipeChange(t, target, "first", 1<<17), pipeChange(t, target, "second", 1<<18)
	pipe := mustOpenPipe(t, target, first)
	fd := int32(pipe.Fd())
	second.GetAction().GetSystem().On = &fd
	own := sharer{actuatetest.MustProcess(t, os.Getpid()), make(chan struct{}, 1)}
	actuatetest.MustApply(t, a, process, first)
	actuatetest.MustApply(t, a, own, second)
	<-own.wanted
	target.Kill()
	_ = target.Wait() // killed
	own.Process.Lock()
	forgotten := make(chan struct{})
	go func() {
		defer close(forgotten)
		a.Forget(process)
	}()
	select {
	case <-own.wanted:
	case <-forgotten:
	}
	own.Unlock()
	<-forgotten
	if result := a.Undo(t.Context(), "second"); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || len(a.Applied()) > 0 {
		t.Errorf("%v, in force: %v", result, a.Applied())
	}
	if size, err := unix.FcntlInt(pipe.Fd(), unix.F_GETPIPE_SZ, 0); err != nil || size != 1<<16 {
		t.Errorf("pipe size %d, %v", size, err)
	}
}

// A process may execute another program below a change to the same value, of that program or of
// another process.
func TestReplacedBelowTheSameValue(t *testing.T) {
	t.Run("of the next program", func(t *testing.T) {
		target, process := mustKeeper(t)
		journal := actuatetest.MustJournal(t, t.TempDir())
		defer journal.Close()
		a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
		policy := func(id string) *attunev1.Change {
			return systemChange(id, "thread.policy", &attunev1.Value{Kind: &attunev1.Value_Text{Text: "batch"}})
		}
		wantPolicy := func(want uint32) {
			t.Helper()
			if attr, err := unix.SchedGetAttr(target.PID, 0); err != nil || attr.Policy != want {
				t.Errorf("it has %+v, %v, want policy %d", attr, err, want)
			}
		}
		actuatetest.MustApply(t, a, process, policy("first"))
		if answer := target.Ask(t, "exec"); answer != "ready" {
			t.Fatalf("%q", answer)
		}
		actuatetest.MustApply(t, a, actuatetest.MustProcess(t, target.PID), policy("same"))
		a.Forget(process)
		wantPolicy(unix.SCHED_BATCH)
		if result := a.Undo(t.Context(), "same"); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || len(a.Applied()) > 0 {
			t.Errorf("%v, in force: %v", result, a.Applied())
		}
		wantPolicy(unix.SCHED_NORMAL)
	})
	t.Run("of another process", func(t *testing.T) {
		target, process := mustKeeper(t)
		journal := actuatetest.MustJournal(t, t.TempDir())
		defer journal.Close()
		a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
		first, same := pipeChange(t, target, "first", 1<<17), pipeChange(t, target, "same", 1<<17)
		pipe := mustOpenPipe(t, target, first)
		fd := int32(pipe.Fd())
		same.GetAction().GetSystem().On = &fd
		actuatetest.MustApply(t, a, process, first)
		actuatetest.MustApply(t, a, actuatetest.MustProcess(t, os.Getpid()), same)
		if answer := target.Ask(t, "exec"); answer != "ready" {
			t.Fatalf("%q", answer)
		}
		a.Forget(process)
		size, err := unix.FcntlInt(pipe.Fd(), unix.F_GETPIPE_SZ, 0)
		if err != nil || size != 1<<17 {
			t.Errorf("pipe size %d, %v", size, err)
		}
		if result := a.Undo(t.Context(), "same"); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || len(a.Applied()) > 0 {
			t.Errorf("%v, in force: %v", result, a.Applied())
		}
		if size, err = unix.FcntlInt(pipe.Fd(), unix.F_GETPIPE_SZ, 0); err != nil || size != 1<<16 {
			t.Errorf("pipe size %d, %v", size, err)
		}
	})
}
