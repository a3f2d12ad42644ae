// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/budget"
	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// onlyKernel is a point that no patch serves: at the return, it wants a parameter.
func onlyKernel(symbol string) *attunev1.MeasurePoint {
	spec := call(symbol, false)
	spec.Place = attunev1.Place_PLACE_EXIT
	spec.Captures = []*attunev1.Capture{{Name: "first", Source: &attunev1.Capture_Parameter{}}}
	return spec
}

// A uprobe stands in every process that maps the file, in the place of a
// patch's jump: the patches give way, and their points go on counting. When it is
// gone, patches serve them again.
func TestPatchGivesWayToUprobe(t *testing.T) {
	program := targets.Build(t, "testdata/patched.c", compilations[0].flags...)
	b := start(t, func(c *Config) { c.UseBPF = true })
	b.sampleEvery(t, 20*time.Millisecond)
	target := targets.Start(t, program, b.controller.Environment()...)
	b.withDMLib(t, target.PID)
	for point := range uint32(2) {
		spec := call("p_static", false)
		spec.SampleEvery = point // another point than the other
		b.addPoint(t, 1+point, spec)
		if s := b.placedWhile(t, 1+point, func() { target.Ask(t, "0") }); s.GetMechanism() != "patch" {
			t.Fatalf("point: %v", s)
		}
	}
	b.requests <- b.adding(3, onlyKernel("p_static"))
	for seen := map[uint32]bool{}; len(seen) < 3; {
		s := b.anyPlaced(t)
		if seen[s.GetPoint()] = true; s.GetMechanism() != "uprobe_multi" && s.GetMechanism() != "uprobe" {
			t.Fatalf("point: %v", s)
		}
	}
	calls := func() {
		t.Helper()
		if got := target.Ask(t, "100"); got != "0 wrong" {
			t.Errorf("results: %s", got)
		}
	}
	calls()
	counted := b.removed(t, 3)
	for seen := map[uint32]bool{}; len(seen) < 2; {
		s := b.anyPlacedWhile(t, func() { target.Ask(t, "0") })
		if seen[s.GetPoint()] = true; s.GetMechanism() != "patch" || s.GetLateNanos() == 0 {
			t.Fatalf("nothing is in its way, and it was out for a while: %v", s)
		}
	}
	calls()
	for point, n := range b.removed(t, 1, 2) {
		counted[point] += n
	}
	for point, want := range map[uint32]uint64{1: 200, 2: 200, 3: 100} {
		if got := counted[point]; got != want*patchedThreads {
			t.Errorf("point %d: counted %d calls of %d", point, got, want*patchedThreads)
		}
	}
	b.stop(t)
	endRight(t, target)
}

// A point of which the budget leaves less in one of two processes gives way to a uprobe in
// both, and records each call from then on.
func TestDegradedPatchGivesWayToUprobe(t *testing.T) {
	program := targets.Build(t, "testdata/patched.c", compilations[0].flags...)
	b := start(t, func(c *Config) { c.UseBPF = true })
	one := targets.Start(t, program, b.controller.Environment()...)
	degraded := b.withDMLib(t, one.PID).GetHandle()
	other := targets.Start(t, program, b.controller.Environment()...)
	b.withDMLib(t, other.PID)
	both := func(calls string) { one.Ask(t, calls); other.Ask(t, calls) }
	point := call("p_static", false)
	point.Delivery = attunev1.Delivery_DELIVERY_EVENT
	b.addPoint(t, 1, point)
	for seen := map[uint64]bool{}; len(seen) < 2; {
		s := b.placedWhile(t, 1, func() { both("0") })
		if seen[s.GetProcess()] = true; s.GetMechanism() != "patch" {
			t.Fatalf("point: %v", s)
		}
	}
	b.controller.placer.Degrade(degraded, budget.Step{Point: 1, To: budget.Aggregated, Reason: "too much"})
	if s := b.placed(t, 1); s.GetDegradedTo() != attunev1.Delivery_DELIVERY_AGGREGATE {
		t.Fatalf("point: %v", s)
	}
	b.requests <- b.adding(2, onlyKernel("p_static"))
	for seen := map[uint64]bool{}; len(seen) < 2; {
		s := b.placed(t, 1)
		if seen[s.GetProcess()] = true; !strings.HasPrefix(s.GetMechanism(), "uprobe") || s.GetDegradedTo() != 0 {
			t.Fatalf("point: %v", s)
		}
	}
	const calls = 10
	both(strconv.Itoa(calls))
	b.requests <- b.removing(1)
	for range 2 {
		if s := b.placed(t, 1); s.GetState() != attunev1.PointState_POINT_STATE_REMOVED {
			t.Fatalf("point: %v", s)
		}
	}
	if got := b.delivered(t)[1]; got != 2*calls*patchedThreads {
		t.Errorf("recorded %d calls of %d", got, 2*calls*patchedThreads)
	}
	b.stop(t)
	endRight(t, one)
	endRight(t, other)
}

// A point that patches would serve, had the process not been busy, does not stay with the kernel.
func TestKernelWhileBusy(t *testing.T) {
	b := start(t, func(c *Config) { c.UseBPF = true })
	target := targets.Start(t, targets.Build(t, "testdata/patched.c", compilations[1].flags...), b.controller.Environment()...)
	process := b.withDMLib(t, target.PID)
	target.Ask(t, "share")
	b.addPoint(t, 1, everyPatched(process.GetHandle()))
	if s := b.placed(t, 1); !strings.HasPrefix(s.GetMechanism(), "uprobe") || !strings.Contains(s.GetReason(), "tried again") {
		t.Fatalf("point: %v", s)
	}
	const calls = 100 * patchedThreads // of each function, of which some call themselves
	target.Ask(t, "100")
	target.Ask(t, "unshare")
	for s := b.placed(t, 1); s.GetMechanism() != "patch"; s = b.placed(t, 1) {
		if !strings.HasPrefix(s.GetMechanism(), "uprobe") {
			t.Fatalf("point: %v", s)
		}
	}
	target.Ask(t, "100")
	if counted := b.removed(t, 1)[1]; counted < 2*calls || counted%(2*calls) != 0 {
		t.Errorf("counted %d calls, want a multiple of %d", counted, 2*calls)
	}
	b.stop(t)
	endRight(t, target)
}

// A point that was off comes back by its uprobe, where a patch of another point is by now.
func TestUprobeComesBackWhereAPatchIs(t *testing.T) {
	b := start(t, func(c *Config) { c.UseBPF = true })
	target := targets.Start(t, targets.Build(t, "testdata/patched.c", compilations[0].flags...), b.controller.Environment()...)
	process := b.withDMLib(t, target.PID).GetHandle()
	b.addPoint(t, 1, onlyKernel("p_static"))
	b.placed(t, 1)
	b.controller.placer.Degrade(process, budget.Step{Point: 1, To: budget.Off, Reason: "too much"})
	if s := b.placed(t, 1); s.GetState() != attunev1.PointState_POINT_STATE_OFF {
		t.Fatalf("point: %v", s)
	}
	b.addPoint(t, 2, call("p_static", false))
	for s := b.placed(t, 2); s.GetMechanism() != "patch"; { // at first the function may still be the kernel's
		s = b.placedWhile(t, 2, func() { target.Ask(t, "0") })
	}
	b.controller.placer.Degrade(process, budget.Step{Point: 1, To: budget.Aggregated, Reason: "affordable"})
	for seen := map[uint32]bool{}; len(seen) < 2; {
		s := b.anyPlaced(t)
		if seen[s.GetPoint()] = true; !strings.HasPrefix(s.GetMechanism(), "uprobe") {
			t.Errorf("point: %v", s)
		}
	}
	target.Ask(t, "100")
	if counted := b.removed(t, 1, 2); counted[1] != 100*patchedThreads || counted[2] != 100*patchedThreads {
		t.Errorf("counted %v, want %d calls at each", counted, 100*patchedThreads)
	}
	b.stop(t)
	endRight(t, target)
}

// A jump of another controller is not known here: a uprobe in its place would
// have the kernel go on in the middle of it.
func TestUprobeIsRefusedWhereCodeWasChanged(t *testing.T) {
	b := start(t, func(c *Config) { c.UseBPF, c.LibraryPath = true, "" })
	target := targets.Start(t, targets.Build(t, "testdata/patched.c", compilations[0].flags...), b.controller.Environment()...)
	found, err := objfile.Resolve(target.PID, "patched*", "p_static", objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	address, code := found.Address, make([]byte, patch.JumpBytes)
	if err := targets.ReadMemory(target.PID, address, code); err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(code)
	changed[len(changed)-1] ^= 1
	if err := targets.WriteMemory(target.PID, address, changed); err != nil {
		t.Fatal(err)
	}
	b.addPoint(t, 1, call("p_static", false))
	if s := b.anyPlaced(t); s.GetState() != attunev1.PointState_POINT_STATE_REFUSED || !strings.Contains(s.GetReason(), "not what its file says") {
		t.Errorf("point: %v", s)
	}
	if err := targets.WriteMemory(target.PID, address, code); err != nil {
		t.Fatal(err)
	}
	if got := target.Ask(t, "10"); got != "0 wrong" {
		t.Errorf("results: %s", got)
	}
	b.stop(t)
}
