// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// Where no thread comes by, one that the attendant stops does the work, but
// calls nothing.
func TestRunAttended(t *testing.T) {
	m, app := mustApp(t, small())
	*app.U64(abi.HeaderAttendEntryAt) = 0x1234
	stops := 0
	m.SetAttendant(func(_ context.Context, entry uint64) (uint64, time.Duration, error) {
		stops++
		if stops == 1 {
			return 0, time.Millisecond, nil // it stood in DMLib
		}
		if entry != 0x1234 || !app.Command(0).Claim(uint32(AtStopped)) {
			return 0, 0, unix.EINVAL
		}
		app.Command(0).Finish(9, PointCount, 7, 0)
		return 1, 2 * time.Millisecond, nil
	})
	synctest.Test(t, func(t *testing.T) {
		got, err := m.Run(t.Context(), Command{Op: OpGOT, At: AtAlloc})
		if err != nil || got.Value != 7 || got.Stopped != 3*time.Millisecond || stops != 2 {
			t.Errorf("got %+v, %v after %d stops", got, err, stops)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, c := range []Command{{Op: OpCall, At: AtAlloc}, {Op: OpGOT, At: AtAlloc, Thread: 4}, {Op: OpGOT, At: AtStub, Point: HookCount + 1}} {
			if _, err := m.Run(ctx, c); !errors.Is(err, ErrNoSafePoint) || stops != 2 {
				t.Errorf("%+v: %v after %d stops", c, err, stops)
			}
		}
	})
}

// DMLib that is inert, or a process that cannot be stopped, is not tried for
// ever, and the error says why.
func TestRunAttendedInVain(t *testing.T) {
	m, app := mustApp(t, small())
	*app.U64(abi.HeaderAttendEntryAt) = 0x1234
	stops := 0
	var failure error
	m.SetAttendant(func(context.Context, uint64) (uint64, time.Duration, error) {
		stops++
		return 0, 0, failure
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := m.Run(ctx, Command{Op: OpGOT, At: AtAlloc}); !errors.Is(err, ErrNoSafePoint) || stops != attendTries {
			t.Errorf("%v after %d stops", err, stops)
		}
		failure = unix.EPERM
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := m.Run(ctx, Command{Op: OpGOT, At: AtAlloc}); !errors.Is(err, unix.EPERM) || stops != attendTries+1 {
			t.Errorf("%v after %d stops", err, stops)
		}
	})
}

// A command that a thread comes by for in time stops nothing.
func TestRunUnattended(t *testing.T) {
	m, app := mustApp(t, small())
	*app.U64(abi.HeaderAttendEntryAt) = 0x1234
	m.SetAttendant(func(context.Context, uint64) (uint64, time.Duration, error) {
		t.Error("a thread was stopped")
		return 0, 0, nil
	})
	synctest.Test(t, func(t *testing.T) {
		go func() { untilPosted(app, AtAlloc).Finish(9, 1, 7, 0) }()
		if got, err := m.Run(t.Context(), Command{Op: OpGOT, At: AtAlloc}); err != nil || got.Stopped != 0 {
			t.Errorf("got %+v, %v", got, err)
		}
	})
}
