// SPDX-License-Identifier: Apache-2.0

//go:build site && full

package cluster

import (
	"slices"
	"strings"
	"testing"
)

// Open MPI starts the ranks of the other node by qrsh.
func TestGridEngineStartsTasksOnAllNodes(t *testing.T) {
	c := mustStart(t, Options{Batch: "gridengine"})
	const job = "#!/bin/sh\n#$ -pe mpi 4 -j y -o /home/alice/out\nmpirun.openmpi -np 4 sh -c 'echo $(hostname):$(id -un)'\n"
	if err := c.WriteFile(t.Context(), "/home/alice/job", job); err != nil {
		t.Fatal(err)
	}
	mustRun(t, c, Alice, Login, "qsub", "/home/alice/job") // -sync looks only every ten seconds
	out := strings.Fields(mustRun(t, c, "", Login, "sh", "-c", "cd /home/alice; until [ \"$(cat out | wc -l)\" = 4 ]; do sleep 0.1; done 2>&-; cat out"))
	slices.Sort(out)
	if want := []string{"node1:alice", "node1:alice", "node2:alice", "node2:alice"}; !slices.Equal(out, want) {
		t.Errorf("tasks %q, want %q", out, want)
	}
}
