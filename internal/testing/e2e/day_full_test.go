// SPDX-License-Identifier: Apache-2.0

//go:build site && full

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/cluster"
	"github.com/attune-hpc/attune/internal/testing/openmpi"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// Nobody asks for anything: jobs are found on their nodes, each is one session,
// and what becomes of them is as the policy says for their users.
func TestSite(t *testing.T) {
	folder := mustShare(t)
	mine, theirs := filepath.Join(folder, "mine"), filepath.Join(folder, "theirs")
	storm := targets.Build(t, workloads+"malloc_storm.c")
	run(t, "cp", storm, mine)
	run(t, "cp", storm, theirs)
	setup, err := cluster.Site{}.Setup("../../..", folder)
	if err != nil {
		t.Fatal(err)
	}
	c := mustCluster(t, folder, setup)

	ranks := 2 * ranksPerNode()
	exchange := ""
	for seconds, again := 30, true; again; seconds *= 2 { // longer where a verdict takes longer
		exchange = submitExchange(t, c, folder, ranks, seconds)
		again = seconds < 60 && slices.ContainsFunc(mustReadSite(t, c)[exchange], unjudged)
	}
	var both sync.WaitGroup // one of each user's, side by side
	for user, program := range map[string]string{cluster.Alice: mine, cluster.Bob: theirs} {
		both.Go(func() {
			if out, err := c.Submit(patience.Context(t), user, "-n1 -w node1", "export "+mapped+"; srun "+program+" 25"); err != nil {
				t.Errorf("%v\n%s\n%s", err, out, c.Logs(t.Context()))
			}
		})
	}
	both.Wait()

	reports := mustReadSite(t, c)
	for _, program := range []string{exchange, mine, theirs} {
		if len(reports[program]) != 1 {
			t.Fatalf("%d sessions of %s, want one\n%s", len(reports[program]), program, c.Logs(t.Context()))
		}
	}
	wantTunedTogether(t, reports[exchange][0], ranks)
	if r := reports[mine][0]; keptIn(r, "malloc") != 1 {
		t.Errorf("alice's program is not tuned: changes %+v, refused %+v, points %+v, remarks %+v\n%s", r.Changes, r.Refused, r.Points, r.Remarks, c.Logs(t.Context()))
	}
	wantObserved(t, reports[theirs][0])
}

// mustReadSite returns the reports of all sessions, by their programs.
func mustReadSite(t *testing.T, c *cluster.Cluster) map[string][]report.Report {
	t.Helper()
	texts, err := c.Reports(patience.Context(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Logs(t.Context()))
	}
	reports := map[string][]report.Report{}
	for _, text := range texts {
		mustMatchSchema(t, []byte(text))
		var r report.Report
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		reports[r.Command[0]] = append(reports[r.Command[0]], r)
	}
	return reports
}

// submitExchange runs ranks on both nodes and returns the path of their program:
// each start has its own, so that the session of a start that failed is no other's.
func submitExchange(t *testing.T, c *cluster.Cluster, folder string, ranks, seconds int) (exchange string) {
	t.Helper()
	program, starts := buildMPI(t), 0
	out, err := openmpi.Run(t, func() (string, error) {
		starts++
		exchange = filepath.Join(folder, fmt.Sprintf("exchange-%d-%d", seconds, starts))
		run(t, "cp", program, exchange)
		return c.Submit(patience.Context(t), cluster.Alice, fmt.Sprintf("-N2 -n%d --overcommit", ranks),
			fmt.Sprintf("srun --mpi=pmix --overcommit %s %d", exchange, seconds))
	})
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out, c.Logs(t.Context()))
	}
	return exchange
}

// wantTunedTogether checks that ranks of both nodes were tuned in one session.
func wantTunedTogether(t *testing.T, r report.Report, ranks int) {
	t.Helper()
	found := map[int]string{}
	for _, p := range r.Processes {
		if p.Rank != nil {
			found[*p.Rank] = p.Host
		}
	}
	if len(found) != ranks || found[0] != "node1" || found[ranks-1] != "node2" {
		t.Errorf("ranks on hosts %v, want %d on both nodes", found, ranks)
	}
	if got := keptIn(r, "mpi-progress"); got != ranks {
		t.Errorf("kept in %d ranks, want %d; changes %+v", got, ranks, r.Changes)
	}
}

// wantObserved checks that the program was measured, and nothing changed in it.
func wantObserved(t *testing.T, r report.Report) {
	t.Helper()
	if !slices.ContainsFunc(r.Points, func(p report.Point) bool { return p.Hits > 0 }) {
		t.Errorf("bob's program is not observed: points %+v", r.Points)
	}
	for _, change := range r.Changes {
		if change.AppliedAt != nil {
			t.Errorf("bob's program is changed: %+v", change)
		}
	}
}
