// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// TestSeccompLater: a program that is entered puts itself under a filter which
// kills for a system call that a command would need. No command is executed from
// then on, whoever notices it: the controller, or DMLib, where that is not asked.
func TestSeccompLater(t *testing.T) {
	for _, row := range []struct {
		name   string
		number int
		like   func(pid int) int // whose filters it is to be under; nil: only DMLib looks
	}{
		{"the controller notices", unix.SYS_PRCTL, func(pid int) int { return pid }},
		{"the controller compares with itself", unix.SYS_PRCTL, func(int) int { return os.Getpid() }},
		{"DMLib notices", unix.SYS_PROCESS_VM_READV, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t)
			h := targets.StartProgram(t, "forbids", strconv.Itoa(row.number), "later")
			result := b.inject(t, h.PID)
			defer free(t, result)
			if row.like != nil {
				result.Memory.SetGuard(Confinement(h.PID, mustStatus(t, row.like(h.PID))))
			}
			ctx := patience.Context(t)
			slot := result.Slots[0]
			there := slot
			there.Old = slot.To
			if err := result.Memory.ExchangeSlot(ctx, there); err != nil {
				t.Errorf("before there is a filter: %v", err)
			}
			h.Right(t) // the filter is there
			if err := result.Memory.GiveBackSlot(ctx, slot); !errors.Is(err, shm.ErrConfined) {
				t.Errorf("error %v, want %v", err, shm.ErrConfined)
			}
			short, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			if stayed := GiveBack(short, result.Memory, result.Slots); len(stayed) != len(result.Slots) {
				t.Errorf("%d of %d slots stayed", len(stayed), len(result.Slots))
			}
			h.Right(t)
			h.Finish(t)
		})
	}
}

// TestSeccompBefore: a process that put itself under a filter before anybody came
// is refused, where its parent's filters are those of this process.
func TestSeccompBefore(t *testing.T) {
	h := targets.StartProgram(t, "forbids", strconv.Itoa(unix.SYS_PRCTL))
	h.Right(t)
	if err := Confinement(h.PID, mustStatus(t, os.Getpid()))(); !errors.Is(err, shm.ErrConfined) {
		t.Errorf("error %v, want %v", err, shm.ErrConfined)
	}
	if err := Confinement(h.PID, mustStatus(t, h.PID))(); err != nil {
		t.Errorf("error %v of a process that has had its filter all the time", err)
	}
	h.Finish(t)
}

// TestUnfiltered: a filter counts, whenever it comes and of whichever thread it is.
func TestUnfiltered(t *testing.T) {
	for _, when := range []string{"before", "one", "later"} {
		h := targets.StartProgram(t, "forbids", strconv.Itoa(unix.SYS_PRCTL), when)
		bare := when == "later" && mustStatus(t, os.Getpid()).Seccomp == 0
		if err := Unfiltered(h.PID); errors.Is(err, ErrOtherFilters) == bare || bare && err != nil {
			t.Errorf("%s: error %v", when, err)
		}
		h.Right(t)
		if err := Unfiltered(h.PID); !errors.Is(err, ErrOtherFilters) {
			t.Errorf("%s: error %v, want %v", when, err, ErrOtherFilters)
		}
		h.Finish(t)
	}
}

func mustStatus(t *testing.T, pid int) procid.Status {
	t.Helper()
	status, err := procid.ReadStatus(pid)
	if err != nil {
		t.Fatal(err)
	}
	return status
}
