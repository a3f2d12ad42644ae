// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/cluster"
)

// mustCluster makes a Slurm cluster of two nodes that see this folder.
func mustCluster(t *testing.T, folder string, setup string) *cluster.Cluster {
	t.Helper()
	c, err := cluster.Start(t.Context(), cluster.Options{Repository: "../..", Setup: setup, Keep: []string{folder}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// mustRunOn runs a command on the login node for two minutes at most.
func mustRunOn(t *testing.T, c *cluster.Cluster, user string, command ...string) string {
	t.Helper()
	out, err := runOn(t, c, user, command...)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Logs(t.Context()))
	}
	return out
}

func runOn(t *testing.T, c *cluster.Cluster, user string, command ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	return c.Run(ctx, user, cluster.Login, command...)
}

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
			var started string
			after := rate(t, mustRunRanks(t, c, func() []string {
				started = mustPackApart(t, program)
				return launch(filepath.Join(started, "packed"), "20")
			}))
			if after < leastGain*before {
				t.Errorf("%.0f it/s without, %.0f packed, want %d times more", before, after, leastGain)
			}
			for name, r := range mustReadAll(t, started, 2) {
				if got := keptIn(r, "mpi-progress"); got != ranksPerNode() {
					t.Errorf("%s: kept in %d processes, want %d; changes %+v", name, got, ranksPerNode(), r.Changes)
				}
			}
		})
	}
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

// mustShare makes a folder for all users.
func mustShare(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for _, f := range []string{folder, filepath.Dir(folder)} {
		if err := os.Chmod(f, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// mustReadAll waits for so many reports in a folder, which come after the end of
// their programs, and takes them away.
func mustReadAll(t *testing.T, folder string, n int) map[string]report.Report {
	t.Helper()
	reports := map[string]report.Report{}
	for end := time.Now().Add(20 * time.Second); len(reports) < n && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(folder, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			mustMatchSchema(t, data)
			var r report.Report
			if err := json.Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
			reports[filepath.Base(file)] = r
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(reports) != n {
		t.Fatalf("%d reports, want %d: %v", len(reports), n, slices.Collect(maps.Keys(reports)))
	}
	return reports
}
