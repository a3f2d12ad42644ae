// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// Static probes are the kernel's: the tunlet is silent without root, and the
// program is none the worse.
func TestCollectorIsTuned(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := exec.LookPath(python); err != nil {
		t.Fatal("no python3: apt-get install python3")
	}
	program := []string{python, workloads + "python_gc.py"}
	if os.Geteuid() != 0 {
		if _, r := runTuned(t, nil, append(program, "5")...); keptIn(r, "gc") != 0 {
			t.Errorf("kept without a look at collections: %+v", r.Changes)
		}
		return
	}
	mustBeTuned(t, func() string {
		before := rate(t, run(t, append(program, "3")...))
		stdout, r := runTuned(t, nil, append(program, "20")...)
		return unlessGained(r, "gc", 1, before, rate(t, stdout), 1.5)
	})
}
