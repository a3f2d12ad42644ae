// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
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

// mustRunPlain runs ranks without Attune, once more where Open MPI dies in its
// MPI_Init by itself, as it does now and then (docs/tunlets/mpi-progress.md).
func mustRunPlain(t *testing.T, c *cluster.Cluster, command ...string) string {
	t.Helper()
	out, err := runOn(t, c, cluster.Alice, command...)
	if err == nil {
		return out
	}
	if out != "" || !strings.Contains(err.Error(), "Failing at address: (nil)") {
		t.Fatalf("%v\n%s", err, c.Logs(t.Context()))
	}
	t.Logf("once more: %v", err)
	return mustRunOn(t, c, cluster.Alice, command...)
}

// ranksPerNode is twice what one node has CPUs for.
func ranksPerNode() int { return 2 * runtime.NumCPU() }

// srun starts ranks on two nodes; --overcommit keeps Open MPI from noticing that
// there are more than CPUs.
func srun(command ...string) []string {
	n := strconv.Itoa(2 * ranksPerNode())
	return append([]string{"srun", "--mpi=pmix", "--overcommit", "-N2", "-n" + n}, command...)
}

// Nothing of Attune is on the nodes but the packed file.
func TestPackedRanksAreTunedUnderSlurm(t *testing.T) {
	folder := mustShare(t)
	program := filepath.Join(folder, "mpi_exchange")
	run(t, "cp", buildMPI(t), program)
	packed := filepath.Join(folder, "packed")
	run(t, attune, "pack", program, "-o", packed, "--quiet", "--report", filepath.Join(folder, "%j-%h.json"))
	c := mustCluster(t, folder, "")
	before := rate(t, mustRunPlain(t, c, srun(program, "2")...))
	for launcher, command := range map[string][]string{
		"srun":   srun(packed, "20"),
		"mpirun": {"salloc", "--overcommit", "-N2", "-n" + strconv.Itoa(2*ranksPerNode()), "mpirun.openmpi", packed, "20"},
	} {
		t.Run(launcher, func(t *testing.T) {
			after := rate(t, mustRunOn(t, c, cluster.Alice, command...))
			if after < leastGain*before {
				t.Errorf("%.0f it/s without, %.0f packed, want %d times more", before, after, leastGain)
			}
			reports := mustReadAll(t, folder, 2)
			for name, r := range reports {
				if got := keptIn(r, "mpi-progress"); got != ranksPerNode() {
					t.Errorf("%s: kept in %d processes, want %d; changes %+v", name, got, ranksPerNode(), r.Changes)
				}
			}
		})
	}
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
		t.Fatalf("%d reports, want %d", len(reports), n)
	}
	return reports
}
