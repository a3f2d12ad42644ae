// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"fmt"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// handedOver is how many functions change hands while they are called.
const handedOver = 12

// Patches give way to uprobes while two threads call the functions without a
// pause: the points of the patches count each call once; also behind the
// landing pads of control-flow enforcement.
func TestHandOverCountsEveryCallOnce(t *testing.T) {
	onX86(t)
	for _, pads := range []string{"none", "branch"} {
		t.Run(pads, func(t *testing.T) { testHandOver(t, "-fcf-protection="+pads) })
	}
}

func testHandOver(t *testing.T, flag string) {
	b := start(t, func(c *Config) { c.UseBPF = true })
	b.sampleEvery(t, 20*time.Millisecond)
	target := targets.Start(t, targets.Build(t, "testdata/many.c", "-O1", "-pthread", flag), b.controller.Environment()...)
	b.withDMLib(t, target.PID)
	ask := func() { target.Ask(t, "0") }
	patched := map[uint32]bool{}
	for i := range uint32(handedOver) {
		b.addPoint(t, 1+i, call(fmt.Sprintf("many_%02d", i), false))
		s := b.placedWhile(t, 1+i, ask)
		patched[1+i] = s.GetMechanism() == "patch"
	}
	halt := make(chan struct{})
	calls := hammer(t, target, halt)
	for i := range uint32(handedOver) {
		exit := call(fmt.Sprintf("many_%02d", i), false)
		exit.Place = attunev1.Place_PLACE_EXIT
		b.requests <- &attunev1.ManageResponse{Request: &attunev1.ManageResponse_AddPoint{
			AddPoint: &attunev1.AddPoint{Point: 101 + i, Spec: exit},
		}}
		changed := map[uint32]string{}
		for len(changed) < 1 || patched[1+i] && len(changed) < 2 {
			s := b.anyPlaced(t)
			changed[s.GetPoint()] = s.GetMechanism()
		}
		if m := changed[1+i]; patched[1+i] && m != "uprobe_multi" && m != "uprobe" {
			t.Errorf("many_%02d is counted by %s now", i, m)
		}
	}
	close(halt)
	made := <-calls
	counted := b.countsOf(t, 2*handedOver)
	for i := range uint32(handedOver) {
		if got := counted[1+i]; got != made {
			t.Errorf("many_%02d: counted %d calls of %d (%d), patched %v", i, got, made, int64(got-made), patched[1+i])
		}
	}
	b.stop(t)
	if err := target.End(t); err != nil {
		t.Errorf("target ended with %v", err)
	}
}

// With the kernel's probes the points that share a function are placed as well:
// those that were there first change hands, and count on.
func TestComingsAndGoingsWithUprobesLoseNothing(t *testing.T) {
	onX86(t)
	testComingsAndGoings(t, map[uint32]string{1: "hook", 2: "got"}, func(c *Config) { c.UseBPF = true })
}
