// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// An indirect function is watched where its calls end up. That one begins with
// a jump, which one byte of its distance makes lead to where there is room: it
// can be patched wherever the kernel puts it.
func TestIndirectFunction(t *testing.T) {
	for _, flags := range [][]string{{"-O2"}, {"-O2", "-no-pie", "-fno-pie"}} {
		program := targets.Build(t, "testdata/indirect.c", flags...)
		b := start(t)
		b.sampleEvery(t, 20*time.Millisecond)
		spec := call("i_pick", false)
		spec.GetFunction().Object = "indirect"
		b.addPoint(t, 1, spec)
		target := targets.Start(t, program, b.controller.Environment()...)
		if s := b.placedWhile(t, 1, func() { target.Ask(t, "0") }); s.GetMechanism() != "patch" {
			t.Fatalf("point: %v", s)
		}
		if got := target.Ask(t, "1000"); got != "1000" {
			t.Errorf("results: %s", got)
		}
		if got := b.counts(t, 1, 1000); got != 1000 {
			t.Errorf("counted %d calls of 1000", got)
		}
		b.stop(t)
		if got := target.Ask(t, "10"); got != "10" {
			t.Errorf("results without the patch: %s", got)
		}
		target.EndWell(t)
	}
}
