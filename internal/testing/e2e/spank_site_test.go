// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/cluster"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// attunedSetup has the plugin and attuned on each node, with a policy that lets
// alice have her own processes tuned, and nobody else. The budget is not of concern
// here.
const attunedSetup = `
mkdir -p /etc/slurm
echo 'required %[1]s/packaging/slurm/spank/build/spank_attune.so budget=60000' >/etc/slurm/plugstack.conf
cat >/etc/attune/policy.yaml <<POLICY
service:
  - mode: tune
    users: [alice]
    owners: ["role:user"]
  - mode: none
    reason: for alice only
POLICY
echo 'TaskProlog=%[1]s/packaging/slurm/task-prolog.sh' >/etc/slurm/more.conf
[ "$NODE" = login ] || %[1]s/bin/attuned >"/srv/log/attuned.$NODE" 2>&1 &
`

// mustSetUp writes a file for the nodes of a cluster, with the repository's path
// for each %[1]s.
func mustSetUp(t *testing.T, folder, text string) string {
	t.Helper()
	setup := filepath.Join(folder, "setup")
	files.Write(t, setup, fmt.Appendf(nil, text, mustAbs(t, "../../..")), 0o600)
	return setup
}

// A task that is handed over comes to the gate of its node's attuned with DMLib
// in it, if the policy has it.
func TestTasksAreTakenByAttuned(t *testing.T) {
	run(t, "make", "-s", "-C", "../../..", "slurm")
	folder := mustShare(t)
	c := mustCluster(t, folder, mustSetUp(t, folder, attunedSetup))
	for _, node := range []string{"node1", "node2"} {
		mustBeReady(t, c, node)
	}
	const tasks = 8
	const command = "srun --attune=observe --overcommit -N2 -n8 grep -c attune-dm /proc/self/maps || true"
	out := mustRunOn(t, c, cluster.Alice, "sh", "-c", "cd; "+command)
	if lines := strings.Fields(out); len(lines) != tasks || strings.Contains(out, "0\n") {
		t.Errorf("DMLib is mapped so often in alice's %d tasks: %q", tasks, lines)
	}
	out = mustRunOn(t, c, cluster.Bob, "sh", "-c", "cd; { "+command+"; } 2>&1")
	if strings.Count(out, "0\n") != tasks || strings.Count(out, "attuned refuses: ") != 2 || !strings.Contains(out, "for alice only") {
		t.Errorf("bob's tasks are not let be, or not with the reason, once for each node:\n%s", out)
	}
	t.Run("from the prolog", func(t *testing.T) { wantTakenFromProlog(t, c) })
	t.Run("without a trace", func(t *testing.T) { wantNoTrace(t, c) })
}

// wantTakenFromProlog checks that a task is taken from the prolog, which is the user's:
// the task is a fork of slurmstepd, of which the kernel gives nobody but root the memory.
func wantTakenFromProlog(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	const command = "cd; ATTUNE_MODE=observe srun grep -c attune-dm /proc/self/maps || true"
	var out string
	patience.Until(t, "a task to be taken in the prolog's quarter of a second", func() bool {
		out = mustRunOn(t, c, cluster.Alice, "sh", "-c", command)
		return out != "0\n"
	})
	if n, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || n == 0 {
		t.Errorf("DMLib in the maps of the task: %q", out)
	}
}

// wantNoTrace checks that a job with Attune writes nothing that it would not write
// without: on a node that has none, and after it was removed while the job runs.
func wantNoTrace(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	const stop = "pkill --exact attuned; while pgrep --exact attuned; do sleep 0.1; done >/dev/null; rm -r /var/lib/attune"
	if _, err := c.Run(t.Context(), "", "node2", "sh", "-c", stop); err != nil {
		t.Fatal(err)
	}
	const script = `sed -n "s,.*/\(libattune-dm\)-.*,has \1,p" /proc/$$/maps | sort -u
env | grep -E "^(LD_PRELOAD|ATTUNE_SOCKET|ATTUNE_ONCE|ATTUNE_FILTERS)="
srun -N2 --overcommit --attune=off sh -c "env; env"
srun -N1 -w node1 --attune=observe sh -c "env; env"
touch ready; until [ -e removed ]; do sleep 0.1; done
true | cat; srun -N1 -w node1 --attune=off env`
	done := make(chan struct{})
	go func() {
		defer close(done)
		const remove = "until [ -e /home/alice/ready ]; do sleep 0.1; done; rm -r /var/lib/attune/lib; touch /home/alice/removed"
		if _, err := c.Run(patience.Context(t), "", "node1", "sh", "-c", remove); err != nil {
			t.Error(err)
		}
	}()
	out, err := c.Submit(patience.Context(t), cluster.Alice, "-N2 -w node1,node2 --attune=observe", script)
	<-done
	if err != nil || !strings.HasPrefix(out, "has libattune-dm\n") {
		t.Errorf("batch job without DMLib in its script: %v\n%s", err, out)
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "ld.so") || strings.Contains(line, "libattune-dm-") {
			t.Errorf("the job says %q", line)
		}
	}
}

// mustBeReady waits for a node's attuned.
func mustBeReady(t *testing.T, c *cluster.Cluster, node string) {
	t.Helper()
	const ready = "curl --silent --fail --unix-socket /run/attune/attuned.sock http://attuned/readyz"
	patience.Until(t, "attuned on "+node, func() bool {
		_, err := c.Run(t.Context(), "", node, strings.Fields(ready)...)
		return err == nil
	})
}
