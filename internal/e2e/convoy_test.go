// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import "testing"

func TestConvoyIsTuned(t *testing.T) {
	program := []string{"/usr/bin/python3", workloads + "python_convoy.py"}
	mustBeTuned(t, func() string {
		before := rate(t, run(t, append(program, "3")...))
		stdout, r := runTuned(t, nil, append(program, "40")...)
		return unlessGained(r, "convoy", 1, before, rate(t, stdout), 1.3)
	})
}
