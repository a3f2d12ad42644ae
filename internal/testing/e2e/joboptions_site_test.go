// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/cluster"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// measuredJob has the tasks of a job write figures, and shows what its session made of
// them; nothing if there is none for some seconds.
const measuredJob = `cd "$0"
cat >task <<'END'
#!/bin/sh
exec >figures.$SLURM_PROCID
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "at 50.5 \"steps\""; sleep 0.2; done
END
chmod +x task
srun --attune=observe --attune-objective='speed of it=output:^at ([0-9.]+) "steps"' -N2 ./task
for i in $(seq 40); do
	%[1]s/bin/attune session show $SLURM_JOB_ID --json >report 2>said && grep -q '"finished": *true' report && exec cat report
	sleep 0.2
done`

// What a job asks for is heeded, or refused with the reason where the job writes, once for
// each node; and the job runs.
func TestOptionsOfAJob(t *testing.T) {
	run(t, "make", "-s", "-C", "../../..", "build", "slurm")
	folder := mustShare(t)
	c := mustSite(t, folder, fmt.Sprintf("echo 'TaskProlog=%s' >/etc/slurm/more.conf\n", mustAbs(t, "../../../packaging/slurm/task-prolog.sh")))
	srun := func(t *testing.T, option string) string {
		t.Helper()
		return mustRunOn(t, c, cluster.Alice, "sh", "-c", "cd; srun -N2 --attune=observe "+option+" sh -c 'sleep 2; echo ran' 2>&1")
	}
	for option, reason := range map[string]string{
		"--attune-tunlets=malloc,nosuch":     "the site has no tunlet nosuch; there are: affinity, ",
		"--attune-objective='output:step('":  "objective: output: ",
		"--attune-objective='command:uname'": "objective: a service runs no command of a user's",
	} {
		t.Run(option, func(t *testing.T) {
			var said string
			patience.Until(t, "both nodes' answers in the plugin's quarter of a second", func() bool {
				said = srun(t, option)
				return strings.Count(said, "attuned refuses: task: "+reason) == 2
			})
			if strings.Count(said, "ran\n") != 2 {
				t.Errorf("the job does not run: %s", said)
			}
		})
	}
	if said := srun(t, "--attune-tunlets=malloc"); strings.Contains(said, "there are") || strings.Count(said, "ran\n") != 2 {
		t.Errorf("of one that there is: %s", said)
	}
	t.Run("objective", func(t *testing.T) {
		patience.Until(t, "the tasks to be handed over in the plugin's quarter of a second", func() bool {
			shown := mustRunOn(t, c, cluster.Alice, "salloc", "--quiet", "-N2", "bash", "-c", fmt.Sprintf(measuredJob, mustAbs(t, "../../..")), folder)
			if shown == "" {
				return false
			}
			var r report.Report
			if err := json.Unmarshal([]byte(shown), &r); err != nil {
				t.Fatalf("%v: %s", err, shown)
			}
			o := r.Objective
			if o == nil || o.Name != "speed of it" || o.Values > 0 && (o.Mean == nil || math.Abs(*o.Mean-50.5) > 1e-6) {
				t.Fatalf("%s", shown)
			}
			return o.Values > 5
		})
	})
	t.Run("prolog", func(t *testing.T) { // Slurm gives it no way to the job's output
		const left = "for i in $(seq 50); do /srv/bin/attune node list --verbose | grep 'user [1-9].* is left alone: the site has no tunlet nosuch; there are: ' && exit; sleep 0.1; done"
		patience.Until(t, "the node to tell of a task of the prolog's", func() bool {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				const command = "cd; ATTUNE_MODE=observe ATTUNE_TUNLETS=nosuch srun -w node1 sleep 5"
				if _, err := c.Run(patience.Context(t), cluster.Alice, cluster.Login, "sh", "-c", command); err != nil {
					t.Error(err)
				}
			}()
			told := mustRunOn(t, c, "", "bash", "-c", left) != ""
			<-ended
			return told
		})
	})
}
