// SPDX-License-Identifier: Apache-2.0

package mpiprogress_test

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/tunlets/mpiprogress"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// TestRecordings replays what was recorded on a busy machine with two CPUs: LAMMPS
// with Open MPI, four ranks that spin, and four that yield already; mpi_exchange
// with MPICH, four ranks that spin.
func TestRecordings(t *testing.T) {
	for _, tt := range []struct {
		file     string
		proposes bool
	}{
		{"testdata/crowded.rec", true},
		{"testdata/yielding.rec", false},
		{"testdata/mpich.rec", true},
	} {
		t.Run(tt.file, func(t *testing.T) {
			got := tunlettest.Replay(t, mpiprogress.New, tt.file)
			if strings.Contains(got, "proposes") != tt.proposes {
				t.Errorf("want a proposal: %v:\n%s", tt.proposes, got)
			}
		})
	}
}
