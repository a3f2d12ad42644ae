// SPDX-License-Identifier: Apache-2.0

//go:build site && full

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/cluster"
	"github.com/attune-hpc/attune/internal/testing/openmpi"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// ranksPerNode is twice what one node has CPUs for.
func ranksPerNode() int { return 2 * runtime.NumCPU() }

// srun starts ranks on two nodes; --overcommit keeps Open MPI from noticing that
// there are more than CPUs.
func srun(command ...string) []string {
	n := strconv.Itoa(2 * ranksPerNode())
	return append([]string{"srun", "--mpi=pmix", "--overcommit", "-N2", "-n" + n}, command...)
}

// mpirun starts as many.
func mpirun(command ...string) []string {
	n := strconv.Itoa(2 * ranksPerNode())
	return append([]string{"salloc", "--overcommit", "-N2", "-n" + n, "mpirun.openmpi"}, command...)
}

// Nothing of Attune is on the nodes but the packed file.
func TestPackedRanksAreTunedUnderSlurm(t *testing.T) {
	folder := mustShare(t)
	program := filepath.Join(folder, "mpi_exchange")
	run(t, "cp", buildMPI(t), program)
	c := mustCluster(t, folder, "")
	before := rate(t, mustRunRanks(t, c, func() []string { return srun(program, "2") }))
	for launcher, launch := range map[string]func(...string) []string{"srun": srun, "mpirun": mpirun} {
		t.Run(launcher, func(t *testing.T) {
			var after float64
			var reports map[string]report.Report
			for seconds, again := 20, true; again; seconds *= 2 { // longer where a verdict takes longer
				var started string // where the last start left its reports
				after = rate(t, mustRunRanks(t, c, func() []string {
					started = mustPackApart(t, program)
					return launch(filepath.Join(started, "packed"), strconv.Itoa(seconds))
				}))
				reports = mustReadAll(t, started, 2)
				again = seconds < 60 && slices.ContainsFunc(slices.Collect(maps.Values(reports)), unjudged)
			}
			if after < leastGain*before {
				t.Errorf("%.0f it/s without, %.0f packed, want %d times more", before, after, leastGain)
			}
			for name, r := range reports {
				if got := keptIn(r, "mpi-progress"); got != ranksPerNode() {
					t.Errorf("%s: kept in %d processes, want %d; changes %+v", name, got, ranksPerNode(), r.Changes)
				}
			}
		})
	}
}

// mustRunRanks runs ranks on both nodes and returns what they wrote. command is
// asked before each start.
func mustRunRanks(t *testing.T, c *cluster.Cluster, command func() []string) string {
	t.Helper()
	out, err := openmpi.Run(t, func() (string, error) {
		return c.Run(patience.Context(t), cluster.Alice, cluster.Login, command()...)
	})
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, c.Logs(t.Context()))
	}
	return out
}

// mustPackApart packs a program as `packed` in a new folder beside it, which its
// reports go to: those of another start, which may have failed, do not count.
func mustPackApart(t *testing.T, program string) string {
	t.Helper()
	folder, err := os.MkdirTemp(filepath.Dir(program), "packed-") //nolint:usetesting // the nodes see that folder only
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	run(t, attune, "pack", program, "-o", filepath.Join(folder, "packed"), "--quiet", "--report", filepath.Join(folder, "%j-%h.json"))
	return folder
}

// mustReadAll waits for so many reports in a folder, which come after the end of
// their programs, and takes them away.
func mustReadAll(t *testing.T, folder string, n int) map[string]report.Report {
	t.Helper()
	reports := map[string]report.Report{}
	patience.Until(t, fmt.Sprintf("%d reports", n), func() bool {
		files, err := filepath.Glob(filepath.Join(folder, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			reports[filepath.Base(file)] = mustReadReport(t, file)
		}
		return len(reports) >= n
	})
	return reports
}
