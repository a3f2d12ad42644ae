// SPDX-License-Identifier: Apache-2.0

// Package openmpi starts ranks of bench/workloads/mpi_exchange.c for tests. Now
// and then Open MPI dies in MPI_Init by itself, with Attune and without
// (docs/tunlets/mpi-progress.md). Only this package excuses that death, so that
// all tests excuse the same one. The package has no state.
package openmpi

import (
	"regexp"
	"strings"
	"testing"
)

// Run starts ranks and returns what start returned, from a second start where
// the ranks of the first one died in MPI_Init by themselves. The output of start,
// or the text of its error, must hold what the ranks wrote to standard output
// and to standard error.
func Run(t testing.TB, start func() (output string, err error)) (string, error) {
	t.Helper()
	output, err := start()
	if err == nil || !DiedInInit(output+"\n"+err.Error()) {
		return output, err
	}
	t.Logf("start again, Open MPI died in MPI_Init: %v", err)
	return start()
}

// allBegan matches what rank 0 prints after all ranks have left MPI_Init: its
// first iteration may take long, but the second one comes after a reduction over
// all ranks. Rank 0 prints every 0.1 s, so a death within 0.1 s of MPI_Init is
// excused as well.
var allBegan = regexp.MustCompile(`progress [0-9.]+ ([2-9]|[1-9][0-9]+)\b|total [0-9.]+ [0-9]`)

// DiedInInit returns whether a rank called nil before all ranks had left
// MPI_Init. A rank that only reads or writes at nil has a caller, which Open MPI
// names as the next frame. The output holds standard output and standard error.
func DiedInInit(output string) bool {
	return !allBegan.MatchString(output) &&
		strings.Contains(output, "Signal: Segmentation fault (11)\n") &&
		strings.Contains(output, "Failing at address: (nil)\n") &&
		!strings.Contains(output, "] [ 1] ")
}
