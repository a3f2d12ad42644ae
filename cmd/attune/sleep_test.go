// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
)

// mallocIn returns the tunlet of that name in a report.
func mallocIn(t *testing.T, r report.Report) report.Tunlet {
	t.Helper()
	for _, tunlet := range r.Tunlets {
		if tunlet.Name == "malloc" {
			return tunlet
		}
	}
	t.Fatalf("tunlets %+v", r.Tunlets)
	return report.Tunlet{}
}

// A tunlet is started for a program that may have its problem, and for no other.
func TestTunletsSleep(t *testing.T) {
	const run = `exec $ATTUNE_BINARY run --quiet --report r.json --timeline t -- sh -c `
	for _, tt := range []struct {
		name, program string
		awake         bool
	}{
		{"first run", `until grep -q asleep t; do sleep 0.01; done`, false},
		{"second run", `until grep -q asleep t; do sleep 0.01; done`, false},
		// A shell that forks has to copy its pages again and again. It seldom looks into
		// the timeline, which grows with each process.
		{"page faults", `until grep -q running t; do for i in $(seq 100); do (:); done; done`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if got := shellIn(t, dir, run+"'"+tt.program+"'", ""); got.code != 0 {
				t.Fatalf("%+v", got)
			}
			tunlet := mallocIn(t, readReport(t, dir))
			want := "asleep"
			if tt.awake {
				want = "stopped"
			}
			if tunlet.State != want || (tunlet.PeakRSSBytes > 0) != tt.awake || tunlet.Version == "" {
				t.Errorf("%+v, want it %s", tunlet, want)
			}
		})
	}
}
