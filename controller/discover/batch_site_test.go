// SPDX-License-Identifier: Apache-2.0

//go:build site

package discover

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/cluster"
	"github.com/attune-hpc/attune/internal/testing/patience"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// watchNode makes TestExecutionsUnderSlurm watch the node that it runs on.
const watchNode = "ATTUNE_TEST_WATCH_NODE"

// rankFound is what a node says of a process that was found.
type rankFound struct {
	Host, Job string
	PID, Rank int32
}

// solver is the base name of the program that is looked for.
const solver = "attune-solver"

// watch looks for what the batch system starts until its standard input ends. The
// tests below run it on the nodes of a cluster.
func watch(t *testing.T) {
	t.Helper()
	r := mustRun(t, Options{})
	r.SetRegistrations([]*attunev1.Registration{{
		Id: "1", Executable: solver, BatchOnly: true, Owner: &attunev1.Principal{Role: attunev1.Role_ROLE_ADMIN},
	}})
	patience.Until(t, "a way to look for processes", func() bool { return r.Status().Mode != "" })
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	out := json.NewEncoder(os.Stdout)
	_ = out.Encode(rankFound{Host: host, Job: r.Status().Mode})
	go func() {
		for f := range r.found {
			_ = out.Encode(rankFound{Host: host, Job: f.Process.GetJob().Key(), PID: f.Process.GetIdentity().GetPid(), Rank: f.Process.GetRank()})
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// watched is a cluster with somebody on each node who looks for the program.
type watched struct {
	*cluster.Cluster
	found chan rankFound
}

func mustWatch(t *testing.T, batch string) *watched {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{found: make(chan rankFound, 1000)}
	w.Cluster, err = cluster.Start(t.Context(), cluster.Options{Repository: "../..", Batch: batch, Keep: []string{filepath.Dir(self)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Close()
		// Its first processes end a moment later, as children of this one (TestMain).
		for err := error(nil); !errors.Is(err, syscall.ECHILD); {
			_, err = syscall.Wait4(-1, nil, 0, nil)
		}
	})
	for _, node := range []string{"node1", "node2"} {
		w.mustStart(t, node, self)
	}
	w.mustCall(t, "", "cp /bin/sleep /home/alice/"+solver)
	return w
}

// mustStart starts watch on a node and returns when it looks.
func (w *watched) mustStart(t *testing.T, node, self string) {
	t.Helper()
	cmd := w.Command(context.Background(), "", node, "env", watchNode+"=1", self, "-test.run=^TestExecutionsUnderSlurm$")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	done := make(chan struct{})
	t.Cleanup(func() {
		_ = stdin.Close()
		<-done
		_ = cmd.Wait() // ends with the cluster, if not before
	})
	var first rankFound
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &first) != nil || first.Job != ModeWatch {
		close(done)
		t.Fatalf("%s: not by events, but %q", node, lines.Text())
	}
	go func() {
		defer close(done)
		for lines.Scan() {
			var f rankFound
			if json.Unmarshal(lines.Bytes(), &f) == nil { // else a line of the test's
				w.found <- f
			}
		}
	}()
}

// mustCall runs a shell command in alice's home on the login node.
func (w *watched) mustCall(t *testing.T, user, command string) {
	t.Helper()
	if _, err := w.Run(patience.Context(t), user, cluster.Login, "sh", "-c", "cd /home/alice; "+command); err != nil {
		t.Fatalf("%v\n%s", err, w.Logs(t.Context()))
	}
}

// mustFindAll waits for so many processes and returns their hosts and ranks by
// job.
func (w *watched) mustFindAll(t *testing.T, processes int) map[string]map[rankFound]bool {
	t.Helper()
	jobs := map[string]map[rankFound]bool{}
	for range processes {
		f := patience.Receive(t, fmt.Sprintf("process, of %d; found: %v", processes, jobs), w.found)
		if jobs[f.Job] == nil {
			jobs[f.Job] = map[rankFound]bool{}
		}
		jobs[f.Job][rankFound{Host: f.Host, Rank: f.Rank}] = true
	}
	return jobs
}

// mustRunOutsideOfJobs runs the program on a node without the batch system. If
// that is found, it counts as one too many with the jobs that follow.
func (w *watched) mustRunOutsideOfJobs(t *testing.T) {
	t.Helper()
	if _, err := w.Run(patience.Context(t), cluster.Alice, "node1", "/home/alice/"+solver, "0.2"); err != nil {
		t.Fatal(err)
	}
}

// wantExecutions checks that each execution is one job, with four ranks on two
// nodes, each of them once.
func (w *watched) wantExecutions(t *testing.T, executions int) {
	t.Helper()
	jobs := w.mustFindAll(t, 4*executions)
	err := error(nil)
	if len(jobs) != executions {
		err = fmt.Errorf("%d jobs", len(jobs))
	}
	for job, processes := range jobs {
		hosts, ranks := map[string]int{}, map[int32]bool{}
		for p := range processes {
			hosts[p.Host]++
			ranks[p.Rank] = true
		}
		if len(processes) != 4 || hosts["node1"] != 2 || hosts["node2"] != 2 || len(ranks) != 4 || !ranks[0] || !ranks[3] {
			err = errors.Join(err, fmt.Errorf("job %s has hosts %v and ranks %v", job, hosts, ranks))
		}
	}
	if err != nil {
		t.Errorf("%d executions of four ranks on two nodes: %v", executions, err)
	}
}

// twice is a command that runs two times at once.
func twice(command string) string { return command + " & " + command + "; wait" }

func TestExecutionsUnderSlurm(t *testing.T) {
	if os.Getenv(watchNode) != "" {
		watch(t)
		return
	}
	w := mustWatch(t, "slurm")
	w.mustRunOutsideOfJobs(t)
	script := func(command string) string {
		return "printf '#!/bin/sh\\n" + command + "\\n' >job; sbatch --overcommit -N2 -n4 job"
	}
	for _, tt := range []struct {
		name, command string
		executions    int
	}{
		{"srun", "srun --overcommit -N2 -n4 ./attune-solver 1", 1},
		{"srun with pmix", "srun --mpi=pmix --overcommit -N2 -n4 ./attune-solver 1", 1},
		{"srun with pmi2", "srun --mpi=pmi2 --overcommit -N2 -n4 ./attune-solver 1", 1},
		{"two jobs", twice("srun --overcommit -N2 -n4 ./attune-solver 1"), 2},
		{"two steps", script(twice("srun --overlap ./attune-solver 1")), 2},
		{"Open MPI's mpirun", script("mpirun.openmpi -np 4 ./attune-solver 1"), 1},
		{"two of Open MPI's mpirun", script(twice("mpirun.openmpi -np 4 ./attune-solver 1")), 2},
		{"two of MPICH's mpirun", script(twice("mpirun.mpich -np 4 ./attune-solver 1")), 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.mustCall(t, cluster.Alice, tt.command)
			w.wantExecutions(t, tt.executions)
		})
	}
}
