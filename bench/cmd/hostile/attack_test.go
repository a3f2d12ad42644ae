// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"testing"

	"github.com/attune-hpc/attune/bench/internal/present"
)

func TestIdleIn(t *testing.T) {
	all := map[string]int{
		"fuse silences": 1, "objects processes": 2, "execs execs": 1000, "stands runs of hostile-maps": 2,
		"sockets connections to run/attuned.sock": 300, "calls lists, OK": 5, "calls streams, Unavailable": 7,
	}
	with := func(change func(map[string]int)) map[string]int {
		counts := maps.Clone(all)
		change(counts)
		return counts
	}
	for _, tt := range []struct {
		name   string
		counts map[string]int
		want   []string
	}{
		{"all did something", all, nil},
		{"nothing was counted", nil, attacks},
		{"no program was executed", with(func(c map[string]int) { delete(c, "execs execs") }), []string{"execs"}},
		{"nobody was there to answer", with(func(c map[string]int) { delete(c, "calls lists, OK") }), []string{"calls"}},
		{"counted none", with(func(c map[string]int) { c["fuse silences"] = 0 }), []string{"fuse"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := idleIn(tt.counts); !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// What was not weighed is not within its limit.
func TestNothingWeighedMisses(t *testing.T) {
	d := &document{}
	d.Print()
	memory := slices.IndexFunc(d.Goals, func(g present.Goal) bool { return g.Name == "memory, share of its limit" })
	if memory < 0 || d.Goals[memory].Met() {
		t.Errorf("no goal of memory that is missed: %+v", d.Goals)
	}
}
