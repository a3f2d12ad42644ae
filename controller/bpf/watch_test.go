// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"math"
	"os/exec"
	"testing"
)

// The parts of the programs that call no helper run natively, with checks that
// the kernel does not have.
func TestWatchHeaderNatively(t *testing.T) {
	binary := mustCompile(t, "watch_test.c", "-Iinclude", "-fsanitize=address,undefined", "-Wno-unused-variable")
	if out, err := exec.Command(binary).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestNewWatch(t *testing.T) {
	watch := newWatch(pointConfig{events: true, sampleMask: 7, minValue: 2, maxValue: 9})
	if watch.Flags != watchEvent || watch.SampleMask != 7 || watch.MinValue != 2 || watch.MaxValue != 9 {
		t.Errorf("watch = %+v", watch)
	}
	for i, extremes := range watch.Extremes {
		if extremes.Min != math.MaxUint64 || extremes.Max != 0 {
			t.Errorf("extremes %d = %d, %d: not empty", i, extremes.Min, extremes.Max)
		}
	}
}
