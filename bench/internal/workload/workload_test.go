// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
)

// Each program that can run here says when it begins and how far it got, in
// the format that the catalogue claims for it.
func TestStormsSayHowFarTheyGot(t *testing.T) {
	c := Catalogue{Sources: "../../workloads", Cache: t.TempDir()}
	for _, storm := range c.Storms(t.Context()) {
		t.Run(storm.Name, func(t *testing.T) {
			if storm.Missing != "" {
				t.Skip(storm.Missing)
			}
			r, err := measure.Run(t.Context(), storm.Command(1), storm.BestSettings...)
			if err != nil {
				t.Fatal(err)
			}
			rate, err := storm.Format.Rate(r)
			if err != nil || rate <= 0 {
				t.Errorf("rate: got %v, %v", rate, err)
			}
			if begun := storm.Format.Beginning(r); !begun.After(r.Started) || begun.After(r.Started.Add(r.Wall)) {
				t.Errorf("beginning: got %v after the start, want it within the run of %v", begun.Sub(r.Started), r.Wall)
			}
			if r.Wall < 900*time.Millisecond {
				t.Errorf("ended after %v, want about 1 s", r.Wall)
			}
		})
	}
}
