// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/controller/patch"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procmem"
	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// A uprobe stands in every process that maps the file, in the place of a
// patch's jump: the patch gives way, and its point goes on counting.
func TestPatchGivesWayToUprobe(t *testing.T) {
	onX86(t)
	program := targets.Build(t, "testdata/patched.c", compilations[0].flags...)
	b := start(t, func(c *Config) { c.UseBPF = true })
	b.sampleEvery(t, 20*time.Millisecond)
	b.addPoint(t, 1, call("p_static", false))
	target := targets.Start(t, program, b.controller.Environment()...)
	if s := b.anyPlaced(t); s.GetMechanism() != "patch" {
		t.Fatalf("point: %v", s)
	}
	exit := call("p_static", false)
	exit.Place = attunev1.Place_PLACE_EXIT
	b.requests <- &attunev1.ManageResponse{RequestId: "exit", Request: &attunev1.ManageResponse_AddPoint{
		AddPoint: &attunev1.AddPoint{Point: 2, Spec: exit},
	}}
	for seen := map[uint32]bool{}; len(seen) < 2; {
		s := b.anyPlaced(t)
		if seen[s.GetPoint()] = true; s.GetMechanism() != "uprobe_multi" && s.GetMechanism() != "uprobe" {
			t.Fatalf("point: %v", s)
		}
	}
	if got := target.Ask(t, "100"); got != "0 wrong" {
		t.Errorf("results: %s", got)
	}
	counted := b.removed(t, 1, 2)
	for point := range uint32(2) {
		if got := counted[point+1]; got != 100*patchedThreads {
			t.Errorf("point %d: counted %d calls of %d", point+1, got, 100*patchedThreads)
		}
	}
	b.stop(t)
	if got := target.Ask(t, "10"); got != "0 wrong" {
		t.Errorf("results: %s", got)
	}
	if err := target.End(t); err != nil {
		t.Errorf("target ended with %v", err)
	}
}

// A jump of another controller is not known here: a uprobe in its place would
// have the kernel go on in the middle of it.
func TestUprobeIsRefusedWhereCodeWasChanged(t *testing.T) {
	onX86(t)
	b := start(t, func(c *Config) { c.UseBPF, c.LibraryPath = true, "" })
	target := targets.Start(t, targets.Build(t, "testdata/patched.c", compilations[0].flags...), b.controller.Environment()...)
	found, err := objfile.Resolve(target.PID, "patched*", "p_static", objfile.Function)
	if err != nil {
		t.Fatal(err)
	}
	address, code := found.Address, make([]byte, patch.JumpBytes)
	if err := procmem.Read(target.PID, address, code); err != nil {
		t.Fatal(err)
	}
	changed := bytes.Clone(code)
	changed[len(changed)-1] ^= 1
	if err := procmem.WriteReadOnly(target.PID, address, changed); err != nil {
		t.Fatal(err)
	}
	b.addPoint(t, 1, call("p_static", false))
	if s := b.anyPlaced(t); s.GetState() != attunev1.PointState_POINT_STATE_REFUSED || !strings.Contains(s.GetReason(), "not what its file says") {
		t.Errorf("point: %v", s)
	}
	if err := procmem.WriteReadOnly(target.PID, address, code); err != nil {
		t.Fatal(err)
	}
	if got := target.Ask(t, "10"); got != "0 wrong" {
		t.Errorf("results: %s", got)
	}
	b.stop(t)
}
