// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// testBudget has a program call a probed function in a tight loop, expects the
// point to be switched off and the program to run on, and the point to come back
// when the program rests.
//
// A line of calls must take far less time than the point stays off, also on a
// crowded machine: what it calls after that would have the point switched off
// again.
func testBudget(t *testing.T, mechanism, calls string, flags []string, options ...func(*Config)) {
	b := start(t, append(options, func(c *Config) { c.Budget = DefaultBudget })...)
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
		!strings.Contains(off.GetDegradedReason(), "where the budget is 2 %") {
		t.Errorf("in a tight loop: %v", off)
	}
	if back := b.placedWhile(t, 3, rest); back.GetState() != attunev1.PointState_POINT_STATE_PLACED || back.GetDegradedTo() != 0 ||
		!strings.Contains(back.GetDegradedReason(), "affordable") {
		t.Errorf("at rest: %v", back)
	}
	b.sampleEvery(t, time.Hour)
	for len(b.events) > 0 {
		<-b.events
	}
	target.Ask(t, "1000")
	b.stop(t)
	if got := b.counts(t, 3, 1000); got != 1000 {
		t.Errorf("counted %d calls of 1000 after it was back", got)
	}
	if err := target.End(t); err != nil {
		t.Errorf("target ended with %v", err)
	}
}

func TestBudgetOfPatch(t *testing.T) {
	onX86(t)
	testBudget(t, "patch", "-500000", nil)
}
