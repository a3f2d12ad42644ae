// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package accountant

import (
	"math"
	"testing"
)

// TestEndsBesideTheEnd: processes that outlive the command, and end while its account is made, are in its sums and
// in its tree, or in neither.
func TestEndsBesideTheEnd(t *testing.T) {
	for range 20 {
		a, _ := mustRun(t, Options{}, "sh", "-c", `i=0; while [ $i -lt 40 ]; do /bin/true & i=$((i + 1)); done`)
		sum := 0.0
		for _, p := range a.Tree {
			sum += *p.CPUSeconds
		}
		if len(a.Tree) != int(*a.Processes.Total) || math.Abs(sum-*a.CPUSeconds) > 1e-6 {
			t.Fatalf("%d processes with %.6f s, in the tree %d with %.6f s", *a.Processes.Total, *a.CPUSeconds, len(a.Tree), sum)
		}
	}
}
