// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"testing"

	"github.com/attune-hpc/attune/internal/account"
)

// TestSharedPeak: what was shared of less memory than there was at most is no peak.
func TestSharedPeak(t *testing.T) {
	for _, tt := range []struct {
		name                    string
		resident, mark, asked   uint64
		wantShared, wantSwapped bool
	}{
		{"asked of the most", 1_000_000_000, 0, 1_000_000_000, true, true},
		{"asked before it grew by too little", 1_000_000_000, 0, 953_000_000, true, true},
		{"asked at 600 of 1,000 MB", 1_000_000_000, 0, 600_000_000, false, true},
		{"one process had more than was seen", 600_000_000, 1_000_000_000, 600_000_000, false, true},
		{"asked of less than half", 1_000_000_000, 0, 400_000_000, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &sampler{sharing: newSharing(), times: make(map[string]float64)}
			s.peaks.Resident, s.sharing.asked = new(tt.resident), tt.asked
			s.sharing.keep("memory.proportional_peak_bytes", tt.asked/2, 1)
			s.sharing.keep("memory.swap_peak_bytes", 5000, 1)
			a := &account.Account{Missing: make(map[string]string)}
			s.fillShared(a, tt.mark)
			if got := s.peaks.Proportional != nil; got != tt.wantShared || got == (a.Missing["memory.proportional_peak_bytes"] != "") {
				t.Errorf("a peak: %v, want %v; missing %q", got, tt.wantShared, a.Missing)
			}
			if got := s.peaks.Swap != nil; got != tt.wantSwapped {
				t.Errorf("a peak of what is swapped out: %v, want %v", got, tt.wantSwapped)
			}
		})
	}
}
