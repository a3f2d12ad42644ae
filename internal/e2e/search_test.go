// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	"github.com/attune-hpc/attune/internal/targets"
)

// A program that has no model: values are tried, and the best one is kept. Nothing is
// tried where nobody has said what.
func TestValuesAreSearched(t *testing.T) {
	program := targets.Build(t, workloads+"blocked_transpose.c", "-O2")
	flags := telling("search", "object=blocked_transpose", "variable=tile", "progress=step", "min=8", "max=24", "tries=2")
	mustBeTuned(t, func() string {
		_, r := runTuned(t, flags, program, "55")
		return unlessGained(r, "search", 1, 0, 0, 0)
	})
	if _, r := runTuned(t, nil, program, "3"); len(r.Changes) != 0 {
		t.Errorf("changes %+v without a name", r.Changes)
	}
}
