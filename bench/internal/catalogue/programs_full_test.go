// SPDX-License-Identifier: Apache-2.0

//go:build full

package catalogue

import (
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// Each program with a problem says how far it got, in the format that its case
// claims, and with the best setting as well. The full suite has installed all of
// them.
func TestProgramsSayHowFarTheyGot(t *testing.T) {
	for _, c := range All() {
		if c.Tunlet == "" || fixedWork(c) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			// Cases that have one program would write it while others run it.
			programs := workload.Catalogue{Sources: "../../workloads", Cache: t.TempDir()}
			p, missing := c.Prepare(t.Context(), programs)
			if missing != "" {
				t.Fatal(missing)
			}
			const seconds = 1 // LAMMPS takes whole ones
			command, settings, _ := p.BestStatic(seconds)
			r, err := measure.Run(t.Context(), command, settings...)
			if err != nil {
				t.Fatal(err)
			}
			rate, err := p.Format.Rate(r)
			if err != nil || rate <= 0 {
				t.Errorf("rate: got %v, %v", rate, err)
			}
			if begun := p.Format.Beginning(r); begun.Before(r.Started) || begun.After(r.Started.Add(r.Wall)) {
				t.Errorf("beginning: got %v after the start, want it within the run of %v", begun.Sub(r.Started), r.Wall)
			}
			if r.Wall.Seconds() < 0.9*seconds {
				t.Errorf("ended after %v, want about %d s", r.Wall, seconds)
			}
		})
	}
}

// fixedWork reports whether the program does not run for a given time.
func fixedWork(c Case) bool {
	return !slices.ContainsFunc(c.Command, func(word string) bool { return strings.Contains(word, "{seconds}") })
}
