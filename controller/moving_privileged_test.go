// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestPointsMoveWhenTheLibraryComes: what the kernel has counted in a process is delivered when
// DMLib comes, what it counts afterwards as well, and a point that was there is not said to have
// been late all the time.
func TestPointsMoveWhenTheLibraryComes(t *testing.T) {
	b := start(t, func(c *Config) { c.UseBPF, c.LateLibrary = true, true })
	b.sampleEvery(t, time.Hour)
	b.addPoint(t, 3, &attunev1.MeasurePoint{Id: "fixed", Target: &attunev1.MeasurePoint_Usdt{
		Usdt: &attunev1.UsdtTarget{Object: "captures", Provider: "attune", Name: "fixed"},
	}})
	target := targets.Start(t, targets.Build(t, "bpf/uprobe/testdata/captures.c", "-O2"))
	if err := b.controller.Follow(target.PID); err != nil {
		t.Fatal(err)
	}
	first := b.placed(t, 3)
	if first.GetState() != attunev1.PointState_POINT_STATE_PLACED {
		t.Fatalf("point: %v", first)
	}
	target.Ask(t, "fixed 1000")
	began := time.Now()
	b.addPoint(t, 4, &attunev1.MeasurePoint{Id: "malloc", Target: &attunev1.MeasurePoint_Hook{Hook: "malloc"}})
	again := b.placedWhile(t, 3, func() { target.Ask(t, "fixed 0") })
	gap := time.Since(began)
	if more := time.Duration(again.GetLateNanos() - first.GetLateNanos()); more < 0 || more > gap {
		t.Errorf("late by %v more, and DMLib was not asked for before %v ago", more, gap)
	}
	target.Ask(t, "fixed 1500")
	b.removePoint(t, 3)
	if got := b.counts(t, 3, 2500); got != 2500 {
		t.Errorf("counted %d hits of 2500", got)
	}
	b.stop(t)
	target.EndWell(t)
}
