// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/testing/targets"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Every return is seen at the return instructions, whatever the function looks
// like, and the program computes what it always does.
func TestPatchedExits(t *testing.T) {
	const rounds = 500
	for _, test := range compilations[:3] {
		for _, place := range []attunev1.Place{attunev1.Place_PLACE_EXIT, attunev1.Place_PLACE_BOTH} {
			t.Run(test.name+" "+place.String(), func(t *testing.T) {
				program := targets.Build(t, "testdata/patched.c", test.flags...)
				b := start(t)
				b.sampleEvery(t, 20*time.Millisecond)
				points := b.addPoints(t, maps.Keys(patchedFunctions), place)
				target := targets.Start(t, program, b.controller.Environment()...)
				placed, patches := map[string]*attunev1.PointStatus{}, []uint32(nil)
				for len(placed) < len(points) {
					s := b.anyPlacedWhile(t, func() { target.Ask(t, "0") })
					name := points[s.GetPoint()]
					known := placed[name] != nil
					placed[name] = s
					switch {
					case known:
					case s.GetMechanism() == "patch":
						patches = append(patches, s.GetPoint())
					case strings.Contains(s.GetReason(), "code cannot be patched"):
						t.Logf("%s: %s", name, s.GetReason())
					default:
						t.Errorf("%s: %v", name, s)
					}
				}
				if got := target.Ask(t, "500"); got != "0 wrong" {
					t.Errorf("results under patches: %s", got)
				}
				counted := b.removed(t, patches...)
				for index, name := range points {
					want := patchedFunctions[name] * rounds * patchedThreads
					if got := counted[index]; placed[name].GetMechanism() == "patch" && got != want {
						t.Errorf("%s: counted %d calls of %d", name, got, want)
					}
				}
				if len(patches) == 0 {
					t.Error("no function is patched")
				}
				b.stop(t)
				endRight(t, target)
			})
		}
	}
}

// Each kind of exit, with what it returns where that is known there.
func TestKindsOfExits(t *testing.T) {
	const rounds, threads = 400, 2
	tests := map[string]struct {
		exits uint64 // of two calls
		tail  bool   // nobody sees there when it returns, and what
	}{
		"e_plain": {2, false}, "e_repeated": {2, false}, "e_popping": {2, false}, "e_parts": {2, false},
		"e_tail": {2, true}, "e_conditional": {2, true}, "e_pointer": {2, true}, "e_left": {1, false},
	}
	program := targets.Build(t, "testdata/exits.c", "-O2", "-fno-reorder-blocks-and-partition")
	for _, place := range []attunev1.Place{attunev1.Place_PLACE_EXIT, attunev1.Place_PLACE_BOTH} {
		t.Run(place.String(), func(t *testing.T) {
			b := start(t)
			b.sampleEvery(t, 20*time.Millisecond)
			points := b.addPoints(t, maps.Keys(tests), place)
			target := targets.Start(t, program, b.controller.Environment()...)
			patches, patched := []uint32(nil), map[string]bool{}
			for len(patched) < len(points) {
				s := b.anyPlacedWhile(t, func() { target.Ask(t, "0") })
				name := points[s.GetPoint()]
				if _, known := patched[name]; known {
					continue
				}
				patched[name] = s.GetMechanism() == "patch"
				switch {
				case patched[name] && tests[name].tail:
					t.Errorf("%s: its return is not seen", name)
				case patched[name]:
					patches = append(patches, s.GetPoint())
				case tests[name].tail && strings.Contains(s.GetReason(), "jump to another function"):
				case strings.Contains(s.GetReason(), "where the process has memory"): // the kernel's choice
					t.Logf("%s: %s", name, s.GetReason())
				default:
					t.Errorf("%s: %v", name, s)
				}
			}
			if got := target.Ask(t, strconv.Itoa(rounds)); got != "0 wrong" {
				t.Errorf("results under patches: %s", got)
			}
			counted := b.removed(t, patches...)
			for index, name := range points {
				want := tests[name].exits * rounds * threads / 2
				if got := counted[index]; patched[name] && got != want {
					t.Errorf("%s: counted %d ends of %d", name, got, want)
				}
			}
			b.stop(t)
			endRight(t, target)
		})
	}
}
