// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math/bits"
	"testing"
)

// TestGeometryFor: every thread of a team has a slot and a ring, beside the first
// thread and helpers, whatever that is on the node.
func TestGeometryFor(t *testing.T) {
	for _, row := range []struct {
		name          string
		cpus, threads int
		team          int
		most          int64 // bytes
	}{
		{"two CPUs", 2, 1, 4, 34 << 20},
		{"a laptop", 16, 1, 32, 40 << 20},
		{"a node of 256 hardware threads", 256, 1, 512, 100 << 20},
		{"attached to 256 threads", 2, 257, 257, 80 << 20},
		{"attached to 600 threads", 2, 601, 601, 130 << 20},
		{"attached to 5000 threads", 256, 5000, 4000, 600 << 20},
	} {
		t.Run(row.name, func(t *testing.T) {
			g := GeometryFor(row.cpus, row.threads)
			if g.Slots > maxSlots || g.Rings > maxRings || bits.OnesCount(uint(g.RingRecords)) != 1 {
				t.Errorf("%+v", g)
			}
			if g.Slots <= row.team || g.Rings <= row.team {
				t.Errorf("%+v for a team of %d", g, row.team)
			}
			if g.Bytes() > row.most {
				t.Errorf("%+v takes %d bytes, want %d at most", g, g.Bytes(), row.most)
			}
		})
	}
}

func TestFit(t *testing.T) {
	whole := GeometryFor(4, 1)
	for _, row := range []struct {
		name   string
		limits Limits
		most   int64
		whole  bool
	}{
		{"no limit", Limits{CPUs: 4}, whole.Bytes(), true},
		{"plenty", Limits{CPUs: 4, Addresses: 16 * uint64(whole.Bytes())}, whole.Bytes(), true},
		{"little less", Limits{CPUs: 4, Addresses: 16*uint64(whole.Bytes()) - 1}, whole.Bytes() - 1, false},
		{"256 MB", Limits{CPUs: 4, Addresses: 256 << 20}, 16 << 20, false},
		{"next to nothing", Limits{CPUs: 4, Addresses: 1}, 1 << 20, false},
		{"locked", Limits{CPUs: 4, Locked: true}, 1 << 20, false},
	} {
		if got := Fit(row.limits); got.Bytes() > row.most || (got == whole) != row.whole {
			t.Errorf("%s: %+v with %d bytes, want %d at most", row.name, got, got.Bytes(), row.most)
		}
	}
}

func TestCountCPUs(t *testing.T) {
	for list, want := range map[string]int{"0\n": 1, "0-7\n": 8, "0-3,8-11,16\n": 9, "": 1, "x-y": 1, "7-3": 1} {
		if got := countCPUs(list); got != want {
			t.Errorf("%q: %d CPUs, want %d", list, got, want)
		}
	}
}
