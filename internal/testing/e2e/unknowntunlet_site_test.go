// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/cluster"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// Whoever names a tunlet that the site does not have reads so where the job writes, with
// those that there are, once for each node; the job runs.
func TestUnknownTunletIsTold(t *testing.T) {
	run(t, "make", "-s", "-C", "../../..", "build", "slurm")
	folder := t.TempDir()
	setup, err := cluster.Site{Registrations: "{}"}.Setup("../../..", folder)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(setup, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(file, "echo 'TaskProlog=%s' >/etc/slurm/more.conf\n", mustAbs(t, "../../../packaging/slurm/task-prolog.sh"))
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	c := mustCluster(t, folder, setup)
	srun := func(tunlets string) string {
		return mustRunOn(t, c, cluster.Alice, "sh", "-c", "cd; srun -N2 --attune=observe --attune-tunlets="+tunlets+" sh -c 'sleep 2; echo ran' 2>&1")
	}
	const want = "attuned refuses: task: the site has no tunlet nosuch; there are: affinity, "
	var said string
	patience.Until(t, "both nodes' questions to be answered in the plugin's quarter of a second", func() bool {
		said = srun("malloc,nosuch")
		return strings.Count(said, want) == 2
	})
	if strings.Count(said, "ran\n") != 2 {
		t.Errorf("the job does not run: %s", said)
	}
	if said := srun("malloc"); strings.Contains(said, "there are") || strings.Count(said, "ran\n") != 2 {
		t.Errorf("of one that there is: %s", said)
	}
	// Slurm gives the prolog no way to the job's output.
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
}
