// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"runtime"
	"testing"

	"github.com/attune-hpc/attune/internal/testing/targets"
)

// Two processes that are bound to one CPU get all that there are. What that brings
// depends on what else the machine does; bench/catalogue measures it.
func TestBoundProcessesAreSpread(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("with one CPU nothing can be bound wrongly")
	}
	program := targets.Build(t, workloads+"bound_exchange.c", "-O2")
	tuneUntil(t, applied("affinity", 2), []string{"--tunlet", "affinity"}, program, lasting)
}
