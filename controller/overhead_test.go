// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// testBudget has a program call a probed function in a tight loop, expects the
// point to be switched off and the program to run on, and the point to come back
// when the program rests. The budget is so small that calls are too much on any
// machine, and while the program rests each round is an hour: what is called after
// that is affordable.
func testBudget(t *testing.T, mechanism, calls string, flags []string, options ...func(*Config)) {
	var hours, hour atomic.Int64
	b := start(t, append(options, func(c *Config) {
		c.Budget = 1e-9
		c.budgetClock = func() time.Time { return time.Now().Add(time.Duration(hours.Add(hour.Load())) * time.Hour) }
	})...)
	b.sampleEvery(t, 20*time.Millisecond)
	b.addPoint(t, 3, call("own_work", false))
	target := targets.Start(t, targets.Build(t, "testdata/calls.c", flags...), b.controller.Environment()...)
	if err := b.controller.Follow(target.PID); err != nil {
		t.Fatal(err)
	}
	rest := func() { target.Ask(t, "0") }
	if status := b.placedWhile(t, 3, rest); status.GetMechanism() != mechanism {
		t.Fatalf("point: %v", status)
	}
	off := b.placedWhile(t, 3, func() { target.Ask(t, calls) })
	if off.GetState() != attunev1.PointState_POINT_STATE_OFF || off.GetMechanism() != mechanism ||
		!strings.Contains(off.GetDegradedReason(), "where the budget is ") {
		t.Errorf("in a tight loop: %v", off)
	}
	hour.Store(1)
	if back := b.placedWhile(t, 3, rest); back.GetState() != attunev1.PointState_POINT_STATE_PLACED || back.GetDegradedTo() != 0 ||
		!strings.Contains(back.GetDegradedReason(), "affordable") {
		t.Errorf("at rest: %v", back)
	}
	b.sampleEvery(t, time.Hour)
	b.delivered(t) // before it was off
	target.Ask(t, "1000")
	if got := b.removed(t, 3)[3]; got != 1000 {
		t.Errorf("counted %d calls of 1000 after it was back", got)
	}
	b.stop(t)
	target.EndWell(t)
}

func TestBudgetOfPatch(t *testing.T) {
	testBudget(t, "patch", "-500000", nil)
}
