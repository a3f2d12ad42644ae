// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// leave ends what a point counts while its process lives: the point is removed
// or the controller stops.
var leave = map[string]func(*testing.T, *bench){
	"removed": func(t *testing.T, b *bench) {
		t.Cleanup(func() { b.stop(t) })
		b.removePoint(t, 3)
	},
	"stopped": func(t *testing.T, b *bench) { b.stop(t) },
}

// testLeaving has a point count calls of own_work after the last interval that
// anybody asked for, and expects them all to be delivered when it leaves.
func testLeaving(t *testing.T, mechanism string, ends func(*testing.T, *bench), flags []string, options ...func(*Config)) {
	b := start(t, options...)
	b.sampleEvery(t, time.Hour)
	b.addPoint(t, 3, call("own_work", false))
	target := targets.Start(t, targets.Build(t, "testdata/calls.c", flags...), b.controller.Environment()...)
	if err := b.controller.Follow(target.PID); err != nil {
		t.Fatal(err)
	}
	if status := b.placed(t, 3); status.GetMechanism() != mechanism {
		t.Fatalf("point: %v", status)
	}
	target.Ask(t, "1000")
	ends(t, b)
	if got := b.counts(t, 3, 1000); got != 1000 {
		t.Errorf("counted %d calls of 1000", got)
	}
	target.EndWell(t)
}

func TestLeavingPatch(t *testing.T) {
	for name, ends := range leave {
		t.Run(name, func(t *testing.T) { testLeaving(t, "patch", ends, nil) })
	}
}
