// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A mutex' functions are called as without DMLib until somebody wants their hooks, and
// again when nobody does any more. Objects that come meanwhile are led there as well.
func TestLocksAreHookedOnDemand(t *testing.T) {
	t.Run("preloaded", func(t *testing.T) { locksAreHooked(t, true) })
	t.Run("injected", func(t *testing.T) { locksAreHooked(t, false) })
}

func locksAreHooked(t *testing.T, preloaded bool) {
	const function = "pthread_mutex_lock"
	program := targets.Build(t, "testdata/locked.c", "-O1", "-ldl", "-Wl,-z,now")
	late := targets.Build(t, "testdata/latelocks.c", "-O1", "-shared", "-fPIC")
	b := start(t)
	b.sampleEvery(t, 20*time.Millisecond)
	environment := []string{"LATE=" + late}
	if preloaded {
		environment = append(environment, b.controller.Environment()...)
	}
	target := targets.Start(t, program, environment...)
	if !preloaded {
		attached, err := b.controller.Attach(t.Context(), target.PID)
		if err != nil || attached.NotInjected != nil {
			t.Fatal(err, attached)
		}
	}
	b.withDMLib(t, target.PID)
	images, err := objfile.Images(target.PID)
	if err != nil {
		t.Fatal(err)
	}
	libc, err := objfile.ResolveIn(images, "libc.so.6", function, objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	plain := slotsOf(t, target.PID, "locked", function)
	if !slices.Equal(plain, []uint64{libc.Address}) {
		t.Fatalf("the slot holds %#x before anybody asked, want %#x", plain, libc.Address)
	}
	again := func() { target.Ask(t, "0") }
	b.addPoint(t, 3, &attunev1.MeasurePoint{Id: "locks", Target: &attunev1.MeasurePoint_Hook{Hook: function}})
	if s := b.placedWhile(t, 3, again); s.GetMechanism() != "hook" || s.GetReason() != "" {
		t.Fatalf("point: %v", s)
	}
	hooked := slotsOf(t, target.PID, "locked", function)
	if slices.Equal(hooked, plain) {
		t.Errorf("the slot holds %#x still", hooked)
	}
	target.Ask(t, "1000")
	if got := b.counts(t, 3, 1000); got != 1000 {
		t.Errorf("%d locks, want 1000", got)
	}
	target.Ask(t, "load")
	patience.Until(t, "the late library's slot", func() bool {
		again()
		return slices.Equal(slotsOf(t, target.PID, "latelocks", function), hooked)
	})
	target.Ask(t, "500")
	if got := b.counts(t, 3, 500); got != 500 {
		t.Errorf("%d locks of the late library, want 500", got)
	}
	b.removePoint(t, 3)
	patience.Until(t, "the slots as they were", func() bool {
		again()
		return slices.Equal(slotsOf(t, target.PID, "locked", function), plain)
	})
	b.stop(t)
	target.EndWell(t)
}
