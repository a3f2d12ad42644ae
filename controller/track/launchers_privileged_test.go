// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package track

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/internal/cluster"
)

// execution is what the ranks of one start said of it.
type execution struct {
	keys, hosts map[string]bool
	ranks       []string
}

// executions reads what ranks said, by label.
func executions(out string) map[string]*execution {
	all := make(map[string]*execution)
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 5 || fields[0] != "rank" {
			continue
		}
		e := all[fields[1]]
		if e == nil {
			e = &execution{keys: make(map[string]bool), hosts: make(map[string]bool)}
			all[fields[1]] = e
		}
		e.keys[fields[2]], e.hosts[fields[4]] = true, true
		e.ranks = append(e.ranks, fields[3])
	}
	return all
}

// checkApart checks that each start has one key, all its ranks, on so many
// hosts, and no key of another.
func checkApart(t *testing.T, out string, labels []string, ranks []string, hosts int) {
	t.Helper()
	all := executions(out)
	seen := make(map[string]string)
	for _, label := range labels {
		e := all[label]
		if e == nil {
			t.Errorf("%s: no rank said anything", label)
			continue
		}
		slices.Sort(e.ranks)
		if len(e.keys) != 1 || !slices.Equal(e.ranks, ranks) || len(e.hosts) != hosts {
			t.Errorf("%s: jobs %v, ranks %v, hosts %v", label, e.keys, e.ranks, e.hosts)
		}
		for key := range e.keys {
			if other := seen[key]; other != "" {
				t.Errorf("%s and %s have the same job %s", label, other, key)
			}
			seen[key] = label
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// Without a batch system the launcher alone says what belongs together.
func TestRanksOfLocalLaunchers(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, launcher := range [][]string{
		{"mpirun.openmpi", "--allow-run-as-root", "--host", "localhost:4", "-n", "4"},
		{"mpirun.mpich", "-n", "4"},
	} {
		t.Run(launcher[0], func(t *testing.T) {
			var out strings.Builder
			for _, label := range []string{"first", "second"} {
				// A program between launcher and rank is usual.
				command := exec.CommandContext(t.Context(), launcher[0], append(launcher[1:], "sh", "-c", own+"; :")...)
				command.Env = append(os.Environ(), asRank+"="+label)
				text, err := command.CombinedOutput()
				if err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				out.Write(text)
			}
			checkApart(t, out.String(), []string{"first", "second"}, []string{"0", "1", "2", "3"}, 1)
		})
	}
}

// batchScript starts the program by all launchers, two of each kind at a time.
const batchScript = `#!/bin/bash
unset TMPDIR
start() { # LABEL COMMAND...
    ATTUNE_TEST_RANK=$1 timeout -s KILL 60 "${@:2}"
}
start openmpi1 mpirun.openmpi --oversubscribe -n 4 --map-by node %[1]s &
start openmpi2 mpirun.openmpi --oversubscribe -n 4 --map-by node sh -c '%[1]s; :' &
wait
start mpich1 mpirun.mpich -n 4 -ppn 2 %[1]s &
start mpich2 mpirun.mpich -n 4 -ppn 2 sh -c '%[1]s; :' &
wait
start pmix srun --overcommit -n4 --mpi=pmix %[1]s
start pmi2 srun --overcommit -n4 --mpi=pmi2 %[1]s
start none srun --overcommit -n4 --mpi=none %[1]s
`

// Under Slurm ranks are on several nodes, and parts of one start are in different
// steps, or in none.
func TestRanksUnderSlurm(t *testing.T) {
	dir := t.TempDir()
	for _, each := range []string{dir, filepath.Dir(dir)} { // alice goes through both
		if err := os.Chmod(each, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	rank := filepath.Join(dir, "rank")
	if err := os.WriteFile(rank, program, 0o755); err != nil {
		t.Fatal(err)
	}
	c, err := cluster.Start(t.Context(), cluster.Options{Repository: "../..", Keep: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := c.WriteFile(ctx, "/srv/job", fmt.Sprintf(batchScript, rank)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(ctx, cluster.Alice, cluster.Login, "sbatch", "--wait", "-N2", "-n4", "--overcommit", "-o", "/home/alice/out", "/srv/job"); err != nil {
		t.Errorf("%v\n%s", err, c.Logs(ctx))
	}
	out, err := c.Run(ctx, cluster.Alice, cluster.Login, "cat", "/home/alice/out")
	if err != nil {
		t.Fatal(err)
	}
	checkApart(t, out, []string{"openmpi1", "openmpi2", "mpich1", "mpich2", "pmix", "pmi2", "none"}, []string{"0", "1", "2", "3"}, 2)
}
