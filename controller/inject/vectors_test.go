// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/binary"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// startVectors starts the program whose one thread beside the first keeps values in
// vector registers, and returns that thread.
func startVectors(t *testing.T, what ...string) (target *targets.Target, tid int) {
	t.Helper()
	target = targets.Launch(t, exec.Command(targets.Program(t, "vectors"), what...))
	if line := target.Line(t); line == "none" {
		t.Skip("the processor or the kernel has no tiles (AMX)")
	} else if line != "ready" {
		t.Fatalf("target says %q", line)
	}
	return target, callers(t, target)[0]
}

// vectorKinds are what such a thread may have to do with tiles, beside its other vectors.
var vectorKinds = map[string][]string{"never had tiles": nil, "has tiles": {"tiles"}, "has had tiles": {"released"}}

// TestVectorsOutliveTheTracer: a thread that restores itself has all of its vector
// registers back.
func TestVectorsOutliveTheTracer(t *testing.T) {
	for name, what := range vectorKinds {
		t.Run(name, func(t *testing.T) {
			target, tid := startVectors(t, what...)
			everyDeath(t, func(died func(string) bool) error {
				return executeDying(t, target.PID, died, ExecuteOptions{Anywhere: true, Thread: tid})
			}, func() { target.Right(t) })
			target.Finish(t)
		})
	}
}

// TestVectorsOutliveATimeout: so has one that was given up, as its code took too long.
func TestVectorsOutliveATimeout(t *testing.T) {
	// mov $1<<26,%ecx; dec %ecx; jnz; ret
	slowly := append(binary.LittleEndian.AppendUint32([]byte{0xb9}, 1<<26), 0xff, 0xc9, 0x75, 0xfc, 0xc3)
	for name, what := range vectorKinds {
		t.Run(name, func(t *testing.T) {
			target, tid := startVectors(t, what...)
			options := patiently(ExecuteOptions{Anywhere: true, Thread: tid, Timeout: time.Millisecond})
			patience.Until(t, "a timeout that is noticed in time", func() bool {
				_, _, err := Execute(t.Context(), mustOpen(t, target.PID), slowly, options)
				if err != nil && !errors.Is(err, ErrTimeout) {
					t.Fatalf("got %v, want %v", err, ErrTimeout)
				}
				return err != nil
			})
			target.Right(t)
			target.Finish(t)
		})
	}
}
