// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Every return is seen at the return instructions, whatever the function looks
// like, and the program computes what it always does.
func TestPatchedExits(t *testing.T) {
	onX86(t)
	const rounds = 500
	for _, test := range compilations[:3] {
		for _, place := range []attunev1.Place{attunev1.Place_PLACE_EXIT, attunev1.Place_PLACE_BOTH} {
			t.Run(test.name+" "+place.String(), func(t *testing.T) {
				program := targets.Build(t, "testdata/patched.c", test.flags...)
				b := start(t)
				b.sampleEvery(t, 20*time.Millisecond)
				index, points := uint32(0), map[uint32]string{}
				for name := range patchedFunctions {
					index++
					points[index] = name
					spec := call(name, false)
					spec.Place = place
					b.addPoint(t, index, spec)
				}
				target := targets.Start(t, program, b.controller.Environment()...)
				placed, patches := map[string]*attunev1.PointStatus{}, 0
				for range points {
					s := b.anyPlacedWhile(t, func() { target.Ask(t, "0") })
					name := points[s.GetPoint()]
					placed[name] = s
					switch {
					case s.GetMechanism() == "patch":
						patches++
					case strings.Contains(s.GetReason(), "code cannot be patched"):
						t.Logf("%s: %s", name, s.GetReason())
					default:
						t.Errorf("%s: %v", name, s)
					}
				}
				if got := target.Ask(t, "500"); got != "0 wrong" {
					t.Errorf("results under patches: %s", got)
				}
				counted := b.countsOf(t, uint64(patches))
				for index, name := range points {
					want := patchedFunctions[name] * rounds * patchedThreads
					if got := counted[index]; placed[name].GetMechanism() == "patch" && got != want {
						t.Errorf("%s: counted %d calls of %d", name, got, want)
					}
				}
				if patches == 0 {
					t.Error("no function is patched")
				}
				b.stop(t)
				if got := target.Ask(t, "10"); got != "0 wrong" {
					t.Errorf("results without patches: %s", got)
				}
				if err := target.End(t); err != nil {
					t.Errorf("target ended with %v", err)
				}
			})
		}
	}
}
