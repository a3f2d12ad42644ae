// SPDX-License-Identifier: Apache-2.0

package mpiprogress_test

import "testing"

// TestRecordings replays what was recorded of LAMMPS on a busy machine.
func TestRecordings(t *testing.T) {
	for _, tt := range []struct {
		file      string
		ranks     int
		proposals int
	}{
		{"testdata/crowded.txt", 4, 1},
		{"testdata/roomy.txt", 2, 0},
		{"testdata/yielding.txt", 4, 0},
	} {
		t.Run(tt.file, func(t *testing.T) {
			h := start(t)
			ranks := startRanks(h, tt.ranks, 0.5)
			h.Replay(tt.file, ranks...)
			if len(h.Proposals) != tt.proposals {
				t.Fatalf("proposals %v, want %d", h.Proposals, tt.proposals)
			}
			if tt.proposals > 0 {
				p := h.Proposals[0]
				t.Logf("at %v, predicted gain %.1f: %s", p.At, p.GetPredictedGain(), p.GetReason())
			}
		})
	}
}
