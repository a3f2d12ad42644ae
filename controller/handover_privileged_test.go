// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package controller

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// handedOver is how many functions change hands while they are called.
const handedOver = 12

// Patches give way to uprobes while two threads call the functions without a
// pause: the points of the patches count each call once; also behind the
// landing pads of control-flow enforcement. A kernel whose probes come too early
// misses some, and the points say so.
func TestHandOverCountsEveryCallOnce(t *testing.T) {
	for _, pads := range []string{"none", "branch"} {
		t.Run(pads, func(t *testing.T) { testHandOver(t, "-fcf-protection="+pads) })
	}
}

func testHandOver(t *testing.T, flag string) {
	mechanism, older := uprobeOfThisKernel(t)
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
		b.requests <- b.adding(101+i, onlyKernel(fmt.Sprintf("many_%02d", i)))
		changed := map[uint32]*attunev1.PointStatus{}
		for len(changed) < 1 || patched[1+i] && len(changed) < 2 {
			s := b.anyPlaced(t)
			changed[s.GetPoint()] = s
		}
		if why := changed[101+i].GetReason(); strings.Contains(why, "a uprobe watches it") {
			t.Errorf("exit of many_%02d: by a uprobe because there is one: %s", i, why)
		}
		s := changed[1+i]
		if patched[1+i] && (s.GetMechanism() != mechanism || strings.Contains(s.GetReason(), "were not counted") != (older != "")) {
			t.Errorf("many_%02d: %v", i, s)
		}
	}
	close(halt)
	made := <-calls
	// What was placed last has perhaps seen no call yet.
	const more = 10
	target.Ask(t, strconv.Itoa(more))
	made += more * manyThreads
	var points []uint32
	for i := range uint32(handedOver) {
		points = append(points, 1+i, 101+i)
	}
	counted := b.removed(t, points...)
	for i := range uint32(handedOver) {
		missed := older != "" && patched[1+i] && counted[1+i] > 0 // it was told
		if got := counted[1+i]; got > made || got < made && !missed {
			t.Errorf("many_%02d: counted %d calls of %d (%d), patched %v", i, got, made, int64(got-made), patched[1+i])
		}
	}
	b.stop(t)
	target.EndWell(t)
}

// With the kernel's probes the points that share a function are placed as well:
// those that were there first change hands, and count on.
func TestComingsAndGoingsWithUprobesLoseNothing(t *testing.T) {
	_, older := uprobeOfThisKernel(t)
	var lossy []uint32
	if older != "" { // see TestHandOverCountsEveryCallOnce
		lossy = []uint32{3, 4}
	}
	testComingsAndGoings(t, map[uint32]string{1: "hook", 2: "got"}, lossy, func(c *Config) { c.UseBPF = true })
}
