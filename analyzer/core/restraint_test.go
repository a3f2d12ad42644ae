// SPDX-License-Identifier: Apache-2.0

package core

import (
	"testing"
	"time"
)

// A process that ends while its change is taken back leaves nothing behind: that
// nobody would ever forget.
func TestEndedProcessesDoNotRest(t *testing.T) {
	s := tried(0)
	for range 40 {
		s.now += 50 * time.Millisecond
		s.core.Step(s.now, Sample{Tunlet: "t", Scope: "app", Value: 20, At: s.now})
	}
	if p := s.core.line.active[0]; p.state != StateUndoing {
		t.Fatalf("%v, want it to be taken back for its loss", p.state)
	}
	s.core.Step(s.now, ProcessEnded{Process: 1})
	if p := s.core.archive.finished[0]; p.state != StateUndone {
		t.Errorf("%v, want undone", p.state)
	}
	if n := len(s.core.restraints.rests); n > 0 {
		t.Errorf("%d knobs rest in a process that has ended", n)
	}
}
