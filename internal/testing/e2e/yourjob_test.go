// SPDX-License-Identifier: Apache-2.0

//go:build e2e && full

package e2e

import (
	"strings"
	"testing"
)

// Whoever types the first hour of an owner gets what it says.
func TestYourJob(t *testing.T) {
	said := typeIn(t, ownDir(t), untilKept(t, commandsOf(t, "../../../docs/tutorial/your-job.md"), "/usr/bin/python3 graph.py"))
	for _, want := range []string{
		"nodes/s", "gc: set python.gc.threshold0=200000", "kept      gc: python.gc.threshold0 700 → 200000",
		"objective ^built", "attune: entered process", "PyObject_GC_Del", "700 → 50000", "undone: change ",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing is said of %q:\n%s", want, said)
		}
	}
}
