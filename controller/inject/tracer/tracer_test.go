// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

func mustOpen(t *testing.T, pid int) *proc.Handle {
	t.Helper()
	process, err := proc.Open(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Close() })
	return process
}

// gadgetOf finds what a thread makes system calls by, in the C library.
func gadgetOf(t *testing.T, process *proc.Handle) Gadget {
	t.Helper()
	mappings, err := objfile.Mappings(process.PID())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mappings {
		if m.Exec && strings.Contains(m.Path, "/libc") {
			gadget, err := FindGadget(process, Span{m.Start, m.End})
			if err != nil {
				t.Fatal(err)
			}
			return gadget
		}
	}
	t.Fatal("it has no C library")
	return Gadget{}
}

// anyThread searches for a thread that can be borrowed, among those that it may.
func anyThread(b *Borrower, limit time.Duration, among func(int) bool) *Search {
	return NewSearch(b, SearchOptions{Anywhere: true, Suits: b.Borrowable, Patience: limit, Among: among})
}

// TestBorrowedThreads: each thread makes a system call for us and goes on with its own,
// which may be one that fails after every stop.
func TestBorrowedThreads(t *testing.T) {
	target := targets.StartProgram(t, "timeouts")
	process := mustOpen(t, target.PID)
	b := NewBorrower(process, procid.Status{}, BorrowerOptions{Gadget: gadgetOf(t, process)})
	tids, err := procid.Threads(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, tid := range tids {
		var value uint64
		var cost Cost
		search := anyThread(b, patience.Limit, func(other int) bool { return other == tid })
		err := Run(process, func(tracer *Tracer) error {
			return search.Find(t.Context(), tracer, &cost, func(thread *Thread) (bool, error) {
				borrowed, err := b.Borrow(thread)
				if err != nil {
					return false, errors.Join(err, thread.LetGo())
				}
				value, err = borrowed.Syscall(unix.SYS_GETTID)
				return true, errors.Join(err, borrowed.GiveBack())
			})
		})
		if err != nil || value != uint64(tid) || cost.Thread != tid || cost.Stopped <= 0 {
			t.Errorf("thread %d: %d, %v (%+v)", tid, value, err, cost)
		}
	}
	target.Right(t)
	target.Finish(t)
}

// TestNoThreadSuits: those that were looked at go on, and it is said how often that was.
func TestNoThreadSuits(t *testing.T) {
	target := targets.StartProgram(t, "plain")
	process := mustOpen(t, target.PID)
	b := NewBorrower(process, procid.Status{}, BorrowerOptions{})
	search := NewSearch(b, SearchOptions{Anywhere: true, Suits: func(*Thread, *unix.PtraceRegs) bool { return false }, Patience: 50 * time.Millisecond})
	var cost Cost
	err := Run(process, func(tracer *Tracer) error { return search.Find(t.Context(), tracer, &cost, nil) })
	if !errors.Is(err, ErrNoSafePoint) || cost.Attempts == 0 || cost.Disturbed <= 0 || cost.Thread != 0 {
		t.Errorf("%v (%+v)", err, cost)
	}
	target.Right(t)
	target.Finish(t)
}

// TestThreadThatHasEnded: nobody searches for it any longer.
func TestThreadThatHasEnded(t *testing.T) {
	target := targets.StartProgram(t, "plain")
	process := mustOpen(t, target.PID)
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	b := NewBorrower(process, procid.Status{}, BorrowerOptions{})
	search := NewSearch(b, SearchOptions{Thread: ended.ProcessState.Pid(), Patience: 50 * time.Millisecond})
	err := Run(process, func(tracer *Tracer) error { return search.Find(t.Context(), tracer, new(Cost), nil) })
	if !errors.Is(err, ErrNoSafePoint) || !strings.Contains(err.Error(), "has ended") || search.looks != 0 {
		t.Errorf("%v after %d looks", err, search.looks)
	}
	target.Right(t)
	target.Finish(t)
}

// TestStopAllInExec: the last thread is to be stopped while it executes the program
// again. execve(2) waits for the end of the others, which are held, to be taken.
func TestStopAllInExec(t *testing.T) {
	target := targets.StartProgram(t, "becomes", "8")
	process := mustOpen(t, target.PID)
	tids, err := procid.Threads(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	others := slices.DeleteFunc(tids, func(tid int) bool { return tid == target.PID })
	held := false
	stopInExec := func(tracer *Tracer) error {
		all := newAll(tracer)
		defer all.LetGo()
		if _, err := all.take(others); err != nil {
			return err
		}
		held = true
		if err := target.Say("exec"); err != nil {
			return err
		}
		for ended := false; !ended; { // Receive ends a test in which none ever does
			s, err := procid.ReadThread(target.PID, others[0])
			ended = err != nil || s.State == 'Z'
		}
		return errors.Join(all.takeAll(), all.Check())
	}
	patience.Until(t, "all others to be held", func() bool {
		done := make(chan error, 1)
		go func() { done <- Run(process, stopInExec) }()
		err = patience.Receive(t, "end of an execve(2)", done)
		return held || !errors.Is(err, ErrBusy)
	})
	if !errors.Is(err, proc.ErrImageGone) {
		t.Fatalf("%v, want %v", err, proc.ErrImageGone)
	}
	target.Expect(t, "ready")
	target.Right(t)
	target.Finish(t)
}

// TestStopAll: no thread runs, until all are let go.
func TestStopAll(t *testing.T) {
	target := targets.StartProgram(t, "plain")
	process := mustOpen(t, target.PID)
	stopped := func() (n int) {
		tids, err := procid.Threads(target.PID)
		if err != nil {
			t.Error(err)
		}
		for _, tid := range tids {
			if s, err := procid.ReadThread(target.PID, tid); err == nil && s.State == 't' {
				n++
			}
		}
		return n
	}
	patience.Until(t, "all to be stopped", func() bool {
		err := Run(process, func(tracer *Tracer) error {
			all, err := tracer.StopAll()
			defer all.LetGo()
			if n, _ := all.Stopped(); err == nil && (n != 2 || stopped() != 2) {
				t.Errorf("%d threads are held, %d stopped, want 2", n, stopped())
			}
			return err
		})
		if err != nil && !errors.Is(err, ErrBusy) {
			t.Fatal(err)
		}
		return err == nil
	})
	if n := stopped(); n != 0 {
		t.Errorf("%d threads are stopped afterwards", n)
	}
	target.Right(t)
	target.Finish(t)
}
