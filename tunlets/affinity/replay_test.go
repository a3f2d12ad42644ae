// SPDX-License-Identifier: Apache-2.0

package affinity_test

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/tunlets/affinity"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// TestRecordings replays what was recorded on a busy machine with two CPUs:
// bound_exchange; ping_pong, bound apart; and ping_pong as the scheduler has it there.
func TestRecordings(t *testing.T) {
	for _, tt := range []struct {
		file     string
		proposes bool
	}{
		{"testdata/bound.rec", true},
		{"testdata/apart.rec", true},
		{"testdata/together.rec", false},
	} {
		t.Run(tt.file, func(t *testing.T) {
			got := tunlettest.Replay(t, affinity.New, tt.file)
			if strings.Contains(got, "proposes") != tt.proposes {
				t.Errorf("want a proposal: %v:\n%s", tt.proposes, got)
			}
		})
	}
}
