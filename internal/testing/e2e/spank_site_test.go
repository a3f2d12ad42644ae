// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/cluster"
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
[ "$NODE" = login ] || %[1]s/bin/attuned >"/srv/log/attuned.$NODE" 2>&1 &
`

// mustSetUp writes a file for the nodes of a cluster, with the repository's path
// for each %[1]s.
func mustSetUp(t *testing.T, folder, text string) string {
	t.Helper()
	setup := filepath.Join(folder, "setup")
	if err := os.WriteFile(setup, fmt.Appendf(nil, text, mustAbs(t, "../../..")), 0o600); err != nil {
		t.Fatal(err)
	}
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
