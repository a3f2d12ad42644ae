// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A process that is stopped when it is attached to, as a job that its scheduler has
// suspended, is entered when it goes on.
func TestStoppedProcessIsEnteredLater(t *testing.T) {
	b := start(t, func(c *Config) { c.LateLibrary = true })
	target := targets.Start(t, targets.Build(t, "testdata/locked.c", "-O1", "-ldl", "-Wl,-z,now"))
	signal(t, target, unix.SIGSTOP)
	attached, err := b.controller.Attach(t.Context(), target.PID)
	if err != nil || !attached.Later() || !strings.Contains(attached.NotInjected.Error(), "for now: it is stopped") {
		t.Fatalf("%v, %+v", err, attached)
	}
	b.addPoint(t, 3, locks())
	signal(t, target, unix.SIGCONT)
	if s := b.placedWhile(t, 3, func() { target.Ask(t, "0") }); s.GetMechanism() != "hook" {
		t.Fatalf("point: %v", s)
	}
	target.EndWell(t)
}

// Points that are asked for while a process with DMLib is stopped are refused, and come when
// it goes on.
func TestStoppedProcessHasItsPointsLater(t *testing.T) {
	b := start(t)
	target := targets.Start(t, targets.Build(t, "testdata/locked.c", "-O1", "-ldl", "-Wl,-z,now"), b.controller.Environment()...)
	b.withDMLib(t, target.PID)
	signal(t, target, unix.SIGSTOP)
	b.addPoint(t, 3, locks())
	b.addPoint(t, 4, call("dlsym", true))
	for range 2 {
		if s := b.anyPlaced(t); s.GetState() != attunev1.PointState_POINT_STATE_REFUSED || !strings.Contains(s.GetReason(), "tried again") {
			t.Fatalf("point: %v", s)
		}
	}
	signal(t, target, unix.SIGCONT)
	for mechanisms := map[string]bool{}; !mechanisms["hook"] || !mechanisms["got"]; {
		mechanisms[b.anyPlacedWhile(t, func() { target.Ask(t, "0") }).GetMechanism()] = true
	}
	target.EndWell(t)
}

// locks counts those of mutexes.
func locks() *attunev1.MeasurePoint {
	return &attunev1.MeasurePoint{Id: "locks", Target: &attunev1.MeasurePoint_Hook{Hook: "pthread_mutex_lock"}}
}

// signal sends a process a signal.
func signal(t *testing.T, target *targets.Target, number unix.Signal) {
	t.Helper()
	if err := unix.Kill(target.PID, number); err != nil {
		t.Fatal(err)
	}
}
