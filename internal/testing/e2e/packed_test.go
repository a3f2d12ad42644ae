// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Ranks of a packed program have one controller, with either library: they are in one
// report, and all are tuned.
func TestPackedRanksAreTuned(t *testing.T) {
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			built := buildMPIWith(t, library)
			var file string
			awaitRanks(t, kept("mpi-progress", crowd()), func() *program {
				dir := t.TempDir()
				packed, timeline := filepath.Join(dir, "packed"), filepath.Join(dir, "timeline.jsonl")
				file = filepath.Join(dir, "report.json")
				run(t, attune, "pack", built, "-o", packed, "--quiet", "--report", file, "--timeline", timeline)
				return start(t, timeline, crowded(library, packed, lasting)...)
			})
			patience.Until(t, "the report, which comes after the end", func() bool {
				_, err := os.Stat(file)
				return err == nil
			})
			seen := map[int]bool{}
			for _, p := range mustReadReport(t, file).Processes {
				if p.Rank != nil && p.Instrumented {
					seen[*p.Rank] = true
				}
			}
			if len(seen) != crowd() {
				t.Errorf("ranks %v in the report, want all %d, instrumented", seen, crowd())
			}
		})
	}
}
