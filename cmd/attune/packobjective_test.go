// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// TestPackedObjective: what the owner has packed is measured where the program runs, and the
// report says so where it cannot be.
func TestPackedObjective(t *testing.T) {
	const steps = `i=0; while [ $i -lt $STEPS ]; do echo step; sleep 0.05; i=$((i+1)); done`
	for name, row := range map[string]struct{ objective, script, says string }{
		"output":          {"output:^step", `export STEPS=200; $RUN -c '` + steps + `' >out`, ""},
		"a command":       {"every 200ms command:echo 3", `export STEPS=200; $RUN -c '` + steps + `' >out`, ""},
		"output, a pipe":  {"output:^step", `export STEPS=100; $RUN -c '` + steps + `' 2>&1 | cat`, "is a pipe"},
		"not to be found": {"file:.:x", `export STEPS=10; $RUN -c '` + steps + `' >out`, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			list := emptyPlaces(t)
			dir := t.TempDir()
			packed := mustPack(t, "/bin/bash", "--quiet", "--mode", "observe", "--report", filepath.Join(dir, "r.json"), "--objective", row.objective)
			if got := shell(t, row.script, packed); got.code != 0 {
				t.Errorf("%+v", got)
			}
			patience.Until(t, "the end of the controller", func() bool { return len(list()) == 0 })
			r := readReport(t, dir)
			said := slices.ContainsFunc(r.Remarks, func(m report.Remark) bool { return strings.Contains(m.Text, row.says) })
			if values := r.Objective != nil && r.Objective.Values > 0; values != (row.says == "") || row.says != "" && !said {
				t.Errorf("objective %+v, remarks %+v; want %q", r.Objective, r.Remarks, row.says)
			}
		})
	}
}
