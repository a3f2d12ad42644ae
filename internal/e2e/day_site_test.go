// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/cluster"
	"github.com/attune-hpc/attune/internal/targets"
)

// Nobody asks for anything: jobs are found on their nodes, each is one session,
// and what becomes of them is as the policy says for their users.
func TestSite(t *testing.T) {
	folder := mustShare(t)
	exchange, mine, theirs := filepath.Join(folder, "exchange"), filepath.Join(folder, "mine"), filepath.Join(folder, "theirs")
	run(t, "cp", buildMPI(t), exchange)
	storm := targets.Build(t, workloads+"malloc_storm.c")
	run(t, "cp", storm, mine)
	run(t, "cp", storm, theirs)
	setup, err := cluster.Site{}.Setup("../..", folder)
	if err != nil {
		t.Fatal(err)
	}
	c := mustCluster(t, folder, setup)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	submit := func(user, options, command string) {
		if out, err := c.Submit(ctx, user, options, command); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, c.Logs(t.Context()))
		}
	}
	ranks := 2 * ranksPerNode()
	submit(cluster.Alice, fmt.Sprintf("-N2 -n%d --overcommit", ranks), "srun --mpi=pmix --overcommit "+exchange+" 30")
	var both sync.WaitGroup // one of each user's, side by side
	both.Go(func() { submit(cluster.Alice, "-n1 -w node1", "srun "+mine+" 25") })
	both.Go(func() { submit(cluster.Bob, "-n1 -w node1", "srun "+theirs+" 25") })
	both.Wait()

	texts, err := c.Reports(ctx)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Logs(t.Context()))
	}
	if len(texts) != 3 {
		t.Errorf("%d sessions, want one of each job\n%s", len(texts), c.Logs(t.Context()))
	}
	for _, text := range texts {
		mustMatchSchema(t, []byte(text))
		var r report.Report
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		switch r.Command[0] {
		case exchange:
			wantTunedTogether(t, r, ranks)
		case mine:
			if keptIn(r, "malloc") != 1 {
				t.Errorf("alice's program is not tuned: changes %+v, remarks %+v", r.Changes, r.Remarks)
			}
		default:
			wantObserved(t, r)
		}
	}
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
