// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
	"github.com/attune-hpc/attune/internal/testing/targets"
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

// mustSharePipe opens the pipe of a program, and returns it with a change of its size that the
// program is to get, and one that this process is to get.
func mustSharePipe(t *testing.T, target *targets.Target, firstBytes, secondBytes int64) (pipe *os.File, first, second *attunev1.Change) {
	t.Helper()
	first, second = pipeChange(t, target, "first", firstBytes), pipeChange(t, target, "second", secondBytes)
	pipe = mustOpenPipe(t, target, first)
	fd := int32(pipe.Fd())
	second.GetAction().GetSystem().On = &fd
	return pipe, first, second
}

// A process may end below a change of the pipe that another one has, in which something is being
// changed.
func TestEndedBelowAnotherProcess(t *testing.T) {
	target, process := mustKeeper(t)
	a := mustActuator(t)
	pipe, first, second := mustSharePipe(t, target, 1<<17, 1<<18)
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
		a := mustActuator(t)
		policy := func(id string) *attunev1.Change {
			return systemChange(id, "thread.policy", &attunev1.Value{Kind: &attunev1.Value_Text{Text: "batch"}})
		}
		before := policyOf(t, target.PID)
		actuatetest.MustApply(t, a, process, policy("first"))
		if answer := target.Ask(t, "exec"); answer != "ready" {
			t.Fatalf("%q", answer)
		}
		actuatetest.MustApply(t, a, actuatetest.MustProcess(t, target.PID), policy("same"))
		a.Forget(process)
		wantPolicy(t, "first forgotten", target.PID, unix.SCHED_BATCH)
		if result := a.Undo(t.Context(), "same"); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || len(a.Applied()) > 0 {
			t.Errorf("%v, in force: %v", result, a.Applied())
		}
		wantPolicy(t, "same undone", target.PID, before)
	})
	t.Run("of another process", func(t *testing.T) {
		target, process := mustKeeper(t)
		a := mustActuator(t)
		pipe, first, same := mustSharePipe(t, target, 1<<17, 1<<17)
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
		if result := a.Undo(t.Context(), "second"); result.GetOutcome() != attunev1.Outcome_OUTCOME_UNDONE || len(a.Applied()) > 0 {
			t.Errorf("%v, in force: %v", result, a.Applied())
		}
		if size, err = unix.FcntlInt(pipe.Fd(), unix.F_GETPIPE_SZ, 0); err != nil || size != 1<<16 {
			t.Errorf("pipe size %d, %v", size, err)
		}
	})
}
