// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestManyAreas changes one process after the other, each with an objective
// of its own.
func TestManyAreas(t *testing.T) {
	all := newProcesses(2 * time.Second)
	for n := range 3 * maxAreas {
		all.disturb(time.Duration(n)*time.Second, area{"t", fmt.Sprint(n)}, uint64(n))
	}
	if n := len(all.disturbed); n > maxAreas {
		t.Errorf("%d areas are remembered, want at most %d", n, maxAreas)
	}
	last := &proposal{tunlet: &tunlet{name: "t"}, spec: &attunev1.Proposal{Scope: fmt.Sprint(3*maxAreas - 1)}}
	if at, want := all.quiet(last), (3*maxAreas-1)*time.Second; at <= want {
		t.Errorf("quiet from %v on, want after the last change at %v", at, want)
	}
}
