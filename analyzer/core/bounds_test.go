// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// TestManyScopes changes one process after the other, each with an objective
// of its own.
func TestManyScopes(t *testing.T) {
	c := New(Config{Mode: ModeTune})
	owner := &tunlet{name: "t"}
	for n := range 3 * maxScopes {
		id := fmt.Sprint("c", n)
		p := &proposal{tunlet: owner, spec: &attunev1.Proposal{Scope: id}, state: StateApplying}
		c.archive.changes[id] = &change{proposal: p, spec: &attunev1.Change{Id: id}}
		c.Step(time.Duration(n)*time.Second, Result{Result: &attunev1.ActionResult{
			ChangeId: id, Outcome: attunev1.Outcome_OUTCOME_REFUSED,
		}})
	}
	if n := len(c.processes.disturbed); n > maxScopes {
		t.Errorf("%d areas are remembered, want at most %d", n, maxScopes)
	}
}
