// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/attune-hpc/attune/bench/internal/present"
)

func TestWhatWasNotRunMisses(t *testing.T) {
	ran := result{Name: "control/gzip", Default: []float64{1}, Tuned: []float64{1}}
	for _, tt := range []struct {
		name string
		d    document
		met  bool
	}{
		{"a control that is as fast", document{Controls: []result{ran}}, true},
		{"beside a case that cannot run here", document{Controls: []result{ran}, Missing: []string{"mpi-progress/C"}}, false},
		{"nothing but cases that cannot run here", document{Missing: []string{"mpi-progress/C"}}, false},
		{"a case that has failed", document{Controls: []result{ran}, Failed: []string{"mpi-progress/C"}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if goals := tt.d.goals(false); allMet(goals) != tt.met {
				t.Errorf("met: %v, want %v: %+v", !tt.met, tt.met, goals)
			}
		})
	}
}

func allMet(goals []present.Goal) bool {
	for _, g := range goals {
		if !g.Met() {
			return false
		}
	}
	return true
}
