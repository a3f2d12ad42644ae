// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// manyPoints is how many functions testdata/many.c has.
const manyPoints = 100

// manyThreads is THREADS of it.
const manyThreads = 2

// Many points that come and go together are each placed, count what is theirs
// and leave the code as it was.
func testManyPoints(t *testing.T, rounds int, options ...func(*Config)) {
	b := start(t, options...)
	b.sampleEvery(t, 20*time.Millisecond)
	target := targets.Start(t, targets.Build(t, "testdata/many.c", "-O1", "-pthread"), b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)
	for round := range rounds {
		first := uint32(1 + round*manyPoints)
		for i := range uint32(manyPoints) {
			spec := call(fmt.Sprintf("many_%02d", i), false)
			spec.Processes = []uint64{process.GetHandle()}
			b.requests <- b.adding(first+i, spec)
		}
		placed := b.states(t, manyPoints, func() { target.Ask(t, "0") })
		target.Ask(t, "100")
		counted := b.removed(t, placed...)
		for point, n := range counted {
			if point < first || point >= first+manyPoints || n != 100*manyThreads {
				t.Errorf("round %d: point %d counted %d calls of %d", round, point, n, 100*manyThreads)
			}
		}
		if len(counted) != len(placed) {
			t.Errorf("round %d: %d points of %d have counted", round, len(counted), len(placed))
		}
	}
	b.stop(t)
	target.EndWell(t)
}

// states takes the statuses of so many points and returns those that are in place.
func (b *bench) states(t *testing.T, points int, again func()) (placed []uint32) {
	t.Helper()
	for range points {
		switch s := b.anyPlacedWhile(t, again); s.GetState() {
		case attunev1.PointState_POINT_STATE_PLACED:
			placed = append(placed, s.GetPoint())
		case attunev1.PointState_POINT_STATE_REFUSED:
			// By patch alone: some landings may be in use.
			if len(s.GetReason()) == 0 {
				t.Errorf("refused without a reason: %v", s)
			}
		}
	}
	return placed
}

func TestManyPointsByPatch(t *testing.T) {
	testManyPoints(t, 3)
}
