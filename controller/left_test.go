// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const leftCalls = 100

// callOften has the program call each function a number of times.
func (a *acted) callOften(t *testing.T) {
	t.Helper()
	for range leftCalls {
		a.Ask(t, "call")
	}
}

// at is a point on calls of a function in one process.
func (a *acted) at(t *testing.T, function string, place attunev1.Place) *attunev1.MeasurePoint {
	t.Helper()
	spec := call(function, false)
	spec.Place, spec.Processes = place, []uint64{a.controller.members.OfPID(a.PID).Handle()}
	return spec
}

// point places a point by a patch, or says why it is not.
func (a *acted) point(t *testing.T, index uint32, spec *attunev1.MeasurePoint) error {
	t.Helper()
	a.addPoint(t, index, spec)
	if s := a.placedWhile(t, index, func() { a.Ask(t, "idle") }); s.GetMechanism() != "patch" {
		return fmt.Errorf("%w: %v", patch.ErrUnpatchable, s)
	}
	return nil
}

// Patches that a killed controller has left count for no point of the next one, whose
// numbers are the same: of another function, or of that one.
func TestPatchesOfEarlierController(t *testing.T) {
	program := targets.Build(t, "testdata/acted.c", "-O2")
	a := startPatchable(t, program, nil, func(a *acted) error {
		earlier := sites.NewSites(a.controller.members.OfPID(a.PID), new(sites.Functions))
		for _, name := range []string{"a_target", "a_real"} {
			f, at := a.function(t, name), sites.Where{Entry: true}
			number, err := earlier.Number(f, at, 0)
			if err != nil {
				return err
			}
			if err := a.atHooks(t, func(ctx context.Context) error { return earlier.Measure(ctx, f, number, at) }); err != nil {
				return err
			}
		}
		a.sampleEvery(t, 20*time.Millisecond)
		if err := a.point(t, 1, a.at(t, "a_narrow", attunev1.Place_PLACE_UNSPECIFIED)); err != nil {
			return err
		}
		return a.point(t, 2, a.at(t, "a_target", attunev1.Place_PLACE_UNSPECIFIED))
	})
	a.callOften(t)
	counted := a.removed(t, 1, 2)
	for _, index := range []uint32{1, 2} {
		if got := counted[index]; got != leftCalls {
			t.Errorf("point %d counted %d calls of %d", index, got, leftCalls)
		}
	}
	if got := a.Ask(t, "call"); got != plainAnswer {
		t.Errorf("without points: %s", got)
	}
	a.EndWell(t)
}

// A child that was born with the patches of a point at entry and exits counts by a point
// at the entry what is called, once.
func TestTimedFunctionInForkedChild(t *testing.T) {
	program := targets.Build(t, "testdata/acted.c", "-O2")
	a := startPatchable(t, program, nil, func(a *acted) error {
		a.sampleEvery(t, 20*time.Millisecond)
		return a.point(t, 1, a.at(t, "a_target", attunev1.Place_PLACE_BOTH))
	})
	parent, child := a.PID, a.fork(t)
	if err := child.point(t, 2, child.at(t, "a_target", attunev1.Place_PLACE_UNSPECIFIED)); err != nil {
		t.Fatal(err)
	}
	child.callOften(t)
	if got := child.removed(t, 2)[2]; got != leftCalls {
		t.Errorf("counted %d calls of %d", got, leftCalls)
	}
	child.Ask(t, "leave")
	a.PID = parent
	if got := a.Ask(t, "call"); got != plainAnswer {
		t.Errorf("parent: %s", got)
	}
	a.EndWell(t)
}
