// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package uprobe

import "testing"

// TestCallsThatEndInJumps: each function of a chain of jumps has its own call, at one frame, also
// where calls at this frame were left by longjmp.
func TestCallsThatEndInJumps(t *testing.T) {
	binary := mustCompile(t, "target.c")
	for mechanism, opts := range mechanisms() {
		t.Run(mechanism, func(t *testing.T) {
			u := mustUprobes(t, opts)
			target := mustStartTarget(t, binary)
			symbols := mustSymbols(t, binary, "wraps", "jumps", "leaves")
			mustAttach(t, u, Spec{Path: binary, Symbols: symbols, Point: 1, PID: target.PID, Place: atBoth})
			mustWatch(t, u, target.PID, 1)
			var want uint64
			for range 3 {
				target.mustCall(t, "wraps 10")
				want += 2 * 10
				target.mustCall(t, "leaves 10")
			}
			if got := mustAggregate(t, u, target.PID, 1); got.Count != want || got.Lost != 0 {
				t.Errorf("%d calls, %d lost; want %d", got.Count, got.Lost, want)
			}
		})
	}
}
