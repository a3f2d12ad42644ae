// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
)

// pack packs a program, which writes its report to the file that is returned.
func pack(t *testing.T, program string) (packed, reportFile string) {
	t.Helper()
	dir := t.TempDir()
	packed, reportFile = filepath.Join(dir, "packed"), filepath.Join(dir, "r.json")
	run(t, attune, "pack", program, "-o", packed, "--quiet", "--report", reportFile)
	return packed, reportFile
}

// packedReport waits for the report of a packed program, which comes after its
// end.
func packedReport(t *testing.T, file string) (r report.Report) {
	t.Helper()
	data, err := os.ReadFile(file)
	for end := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(end); data, err = os.ReadFile(file) {
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	mustMatchSchema(t, data)
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPackedMPIRanksAreTuned(t *testing.T) {
	program := buildMPI(t)
	packed, file := pack(t, program)
	ranks := 2 * runtime.NumCPU()
	n := strconv.Itoa(ranks)
	mpirun := []string{"mpirun.openmpi", "--allow-run-as-root", "--host", "localhost:" + n, "--bind-to", "none", "-np", n}
	mustBeTuned(t, func() string {
		before := rate(t, run(t, append(mpirun, program, "2")...))
		after := rate(t, run(t, append(mpirun, packed, "6")...))
		complaint := unlessGained(packedReport(t, file), "mpi-progress", ranks, before, after, leastGain)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return complaint
	})
}

// TestPackedMPICHRanksHaveOneController: with the other library, too.
func TestPackedMPICHRanksHaveOneController(t *testing.T) {
	const ranks = 4
	packed, file := pack(t, buildMPIWith(t, "mpich"))
	run(t, "mpirun.mpich", "-np", strconv.Itoa(ranks), packed, "1")
	r := packedReport(t, file)
	seen := map[int]bool{}
	for _, p := range r.Processes {
		if p.Rank != nil && p.Instrumented {
			seen[*p.Rank] = true
		}
	}
	if len(r.Processes) != ranks || len(seen) != ranks {
		t.Errorf("%d processes of ranks %v in the report, want all %d, instrumented", len(r.Processes), seen, ranks)
	}
}
