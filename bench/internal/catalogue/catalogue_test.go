// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/workload"
	tunlets "github.com/attune-hpc/attune/tunlets/catalogue"
)

func TestCasesAreWhole(t *testing.T) {
	names := map[string]bool{}
	for _, c := range All() {
		t.Run(c.Name, func(t *testing.T) {
			if names[c.Name] {
				t.Error("there is another one of this name")
			}
			names[c.Name] = true
			folder := c.Tunlet
			if folder == "" {
				folder = Control
			}
			if !strings.HasPrefix(c.Name, folder+"/") {
				t.Errorf("does not begin with %s/", folder)
			}
			if c.Tunlet != "" && !slices.Contains(tunlets.Names(), c.Tunlet) {
				t.Errorf("there is no tunlet %s", c.Tunlet)
			}
			if c.Tunlet == "" && (c.Best.known() || c.Format != measure.Format{}) {
				t.Error("a control has a best setting or a rate; its time is what is compared")
			}
			if (c.Unit == "") != (c.Format == measure.Format{}) {
				t.Error("has a unit or a format, want both or none")
			}
		})
	}
}

// Each program with a problem that can run here says how far it got, in the
// format that its case claims, and with the best setting as well.
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
				t.Skip(missing)
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
