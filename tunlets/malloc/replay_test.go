// SPDX-License-Identifier: Apache-2.0

package malloc_test

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/tunlets/malloc"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// TestRecordings replays what was recorded of programs on a busy machine: one
// that has the problem, and two with many page faults of another kind.
func TestRecordings(t *testing.T) {
	for _, tt := range []struct {
		file     string
		proposes bool
	}{
		{"testdata/storm.rec", true},
		{"testdata/first_touch.rec", false},
		{"testdata/mapped_file.rec", false},
	} {
		t.Run(tt.file, func(t *testing.T) {
			got := tunlettest.Replay(t, malloc.New, tt.file)
			if strings.Contains(got, "proposes") != tt.proposes {
				t.Errorf("want a proposal: %v:\n%s", tt.proposes, got)
			}
		})
	}
}
