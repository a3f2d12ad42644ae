// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A program that only computes comes to no safe point: it is stopped for a
// moment, and its calls are counted without a breakpoint.
func TestPointInProgramThatComputes(t *testing.T) {
	program := targets.Build(t, "testdata/compute.c", "-O1", "-fno-builtin")
	b := start(t)
	b.sampleEvery(t, 20*time.Millisecond)
	target := targets.Start(t, program, b.controller.Environment()...)
	b.withDMLib(t, target.PID)
	b.addPoint(t, 3, call("labs", true))
	if s := b.placed(t, 3); s.GetState() != attunev1.PointState_POINT_STATE_PLACED || s.GetMechanism() != "got" {
		t.Fatalf("point: %v", s)
	}
	b.counts(t, 3, 1000)
	b.stop(t)
	if err := unix.Kill(target.PID, unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if got := target.Line(t); got != "0 wrong" {
		t.Errorf("the program says %q", got)
	}
	target.EndWell(t)
}
