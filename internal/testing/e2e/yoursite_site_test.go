// SPDX-License-Identifier: Apache-2.0

//go:build site && full

package e2e

import (
	"strings"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/cluster"
)

// Whoever types the first hour of an administrator, on the site that the page begins
// with, gets what it says. What a job gains within its seconds depends on the machine.
func TestYourSite(t *testing.T) {
	folder := t.TempDir()
	setup, err := cluster.Site{}.Setup("../../..", folder)
	if err != nil {
		t.Fatal(err)
	}
	c := mustCluster(t, folder, setup)
	said := mustRunOn(t, c, "", "bash", "-e", "-o", "pipefail", "-c", "exec 2>&1; PATH=/srv/bin:$PATH\n"+commandsOf(t, "../../../docs/tutorial/your-site.md"))
	for _, want := range []string{
		"watch,batch", "nodes/s", "of alice, ", "tune (policy: service rule 1", "observe (policy: service rule 2", `mode: "tunes" is none of`,
		"as it should be", "the last good policy stays in force", "switched off: by ", ": a new kernel is on trial", "USER ", "\nok\n",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing is said of %q:\n%s", want, said)
		}
	}
}
