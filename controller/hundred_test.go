// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/targets"
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
			b.requests <- &attunev1.ManageResponse{Request: &attunev1.ManageResponse_AddPoint{
				AddPoint: &attunev1.AddPoint{Point: first + i, Spec: spec},
			}}
		}
		placed := b.states(t, manyPoints, func() { target.Ask(t, "0") })
		target.Ask(t, "100")
		counted := b.countsOf(t, placed)
		for point, n := range counted {
			if point < first || point >= first+manyPoints || n != 100*manyThreads {
				t.Errorf("round %d: point %d counted %d calls of %d", round, point, n, 100*manyThreads)
			}
		}
		for i := range uint32(manyPoints) {
			b.requests <- &attunev1.ManageResponse{Request: &attunev1.ManageResponse_RemovePoint{
				RemovePoint: &attunev1.RemovePoint{Point: first + i},
			}}
		}
		b.states(t, int(placed), func() { target.Ask(t, "0") })
	}
	b.stop(t)
	if err := target.End(t); err != nil {
		t.Errorf("target ended with %v", err)
	}
}

// states takes the statuses of so many points and returns how many are in place.
func (b *bench) states(t *testing.T, points int, again func()) (placed uint64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for range points {
		switch s := b.anyPlacedWhile(t, again); s.GetState() {
		case attunev1.PointState_POINT_STATE_PLACED:
			placed++
		case attunev1.PointState_POINT_STATE_REFUSED:
			// By patch alone: some landings may be in use.
			if len(s.GetReason()) == 0 {
				t.Errorf("refused without a reason: %v", s)
			}
		}
		if ctx.Err() != nil {
			t.Fatal("the points take too long")
		}
	}
	return placed
}

func TestManyPointsByPatch(t *testing.T) {
	onX86(t)
	testManyPoints(t, 3)
}
