// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestPointsAtFunctionsOfTheCLibrary: DMLib may call such a function itself, at a safe point
// or in a forked child, and must not come to its point then, where it would call it again.
func TestPointsAtFunctionsOfTheCLibrary(t *testing.T) {
	program := targets.Build(t, "testdata/forks.c", "-fno-inline")
	for _, function := range []string{"pthread_rwlock_wrlock", "pthread_rwlock_unlock", "pthread_setspecific"} {
		t.Run(function, func(t *testing.T) {
			b := start(t)
			b.sampleEvery(t, 20*time.Millisecond)
			timed := call(function, false)
			timed.GetFunction().Object, timed.Place = "libc.so.6", attunev1.Place_PLACE_BOTH
			b.addPoint(t, 3, timed)
			target := targets.Start(t, program, b.controller.Environment()...)
			ask := func(line string) {
				if got := target.Ask(t, line); got != "0 wrong" {
					t.Fatalf("%s: %s", line, got)
				}
			}
			if s := b.placedWhile(t, 3, func() { ask("1") }); s.GetMechanism() != "patch" {
				t.Fatalf("point: %v", s)
			}
			// Its code is made by a thread of the program, which looks for the command at
			// each safe point.
			b.addPoint(t, 4, call("wrong", false))
			if s := b.placedWhile(t, 4, func() { ask("1") }); s.GetMechanism() != "patch" {
				t.Fatalf("second point: %v", s)
			}
			ask("fork")
			b.placedWhile(t, 4, func() { ask("1") }) // in the child, once it has registered
			ask("1000")
			b.stop(t)
			target.EndWell(t)
		})
	}
}
