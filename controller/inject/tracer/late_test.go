// SPDX-License-Identifier: Apache-2.0

package tracer

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// useOnly borrows one thread of a process, which has no lifeline, and calls use with it.
func useOnly(t *testing.T, target *targets.Target, tid int, died func(string) bool, use func(*Borrowed) error) error {
	t.Helper()
	process := mustOpen(t, target.PID)
	gadget := gadgetOf(t, process)
	gadget.Restorer = 0
	b := NewBorrower(process, procid.Status{}, BorrowerOptions{Gadget: gadget, Died: died})
	search := anyThread(b, patience.Limit, func(other int) bool { return other == tid })
	return Run(process, func(tracer *Tracer) error {
		return search.Find(t.Context(), tracer, new(Cost), func(thread *Thread) (bool, error) {
			borrowed, err := b.Borrow(thread)
			if err != nil {
				return false, errors.Join(err, thread.LetGo())
			}
			return true, use(borrowed)
		})
	})
}

// TestLateWithoutLifeline: a thread that comes to no system call in time is given up if it
// brings itself back, and else stands, to be given back.
func TestLateWithoutLifeline(t *testing.T) {
	for _, row := range []struct {
		name string
		line lifeline
		lost bool
	}{{"without", lifeline{}, false}, {"with", lifeline{at: 1}, true}} {
		t.Run(row.name, func(t *testing.T) {
			target := targets.StartProgram(t, "plain")
			tids, err := procid.Threads(target.PID)
			if err != nil || len(tids) != 2 {
				t.Fatalf("threads %v, %v", tids, err)
			}
			err = useOnly(t, target, tids[1], nil, func(b *Borrowed) error {
				b.lifeline = row.line
				err := b.goTo(unix.PTRACE_SYSCALL, "", func(s stop) bool { return s.signal == callStop })
				if err == nil || Lost(err) != row.lost {
					t.Errorf("%v, lost: %v, want %v", err, Lost(err), row.lost)
				}
				if row.lost {
					return nil // the end of the tracer's thread lets it go
				}
				_, err = b.Registers()
				return errors.Join(err, b.LetGo())
			})
			if err != nil {
				t.Error(err)
			}
			target.Right(t)
			target.Finish(t)
		})
	}
}

// TestSettleOnce: a thread that was told to stop and does not is waited for once, and no
// longer when the tracer ends.
func TestSettleOnce(t *testing.T) {
	target := targets.StartProgram(t, "plain")
	tids, err := procid.Threads(target.PID)
	if err != nil || len(tids) != 2 {
		t.Fatalf("threads %v, %v", tids, err)
	}
	computes := tids[1]
	began := time.Now()
	err = Run(mustOpen(t, target.PID), func(tracer *Tracer) error {
		if err := (&Thread{ID: computes}).seize(0); err != nil {
			return err
		}
		tracer.late[computes] = true
		tracer.until = time.Now()
		tracer.settle(0)
		return nil
	})
	if err != nil || time.Since(began) > crowdPatience/2 {
		t.Errorf("%v, after %v", err, time.Since(began))
	}
	target.Right(t)
	target.Finish(t)
}
