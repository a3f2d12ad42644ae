// SPDX-License-Identifier: Apache-2.0

package malloc_test

import (
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// TestRecordings replays what was recorded of real programs on a busy machine.
// The storm begins 1.2 s after its program.
func TestRecordings(t *testing.T) {
	for _, tt := range []struct {
		file      string
		proposals int
	}{
		{"testdata/storm.txt", 1},
		{"testdata/first_touch.txt", 0},
		{"testdata/mapped_file.txt", 0},
	} {
		t.Run(tt.file, func(t *testing.T) {
			h := start(t, nil)
			p := h.StartProcess(&tunlettest.Process{Hits: allocations("malloc", 0, mib)})
			if tt.proposals > 0 {
				p.Hits = allocations("malloc", 500, 2621440) // 8 MiB at most, 2.5 on average
			}
			h.Replay(tt.file, p)
			if len(h.Proposals) != tt.proposals {
				t.Fatalf("proposals %v, want %d", h.Proposals, tt.proposals)
			}
			if tt.proposals == 0 {
				return
			}
			if at := h.Proposals[0].At; at < 1200*time.Millisecond || at > 1700*time.Millisecond {
				t.Errorf("proposed at %v, want within 500 ms of the storm's start at 1.2 s", at)
			}
			t.Logf("predicted gain %.1f: %s", h.Proposals[0].GetPredictedGain(), h.Proposals[0].GetReason())
		})
	}
}
