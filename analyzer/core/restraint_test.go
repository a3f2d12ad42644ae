// SPDX-License-Identifier: Apache-2.0

package core

import (
	"strings"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
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

// TestRestIsTold: people read for how long a knob rests, and not to the nanosecond.
func TestRestIsTold(t *testing.T) {
	p := &proposal{tunlet: &tunlet{name: "t"}, changes: []*change{{spec: &attunev1.Change{Knob: "k", Process: 1}}}}
	for left, want := range map[time.Duration]string{
		9464112114: "another 9.5s after", 10 * time.Second: "another 10s after", 1: "another 100ms after",
	} {
		r := restraints{rests: map[rest]time.Duration{{"t", p.changes[0].knob()}: time.Minute + left}}
		if got := r.untouchable(p, time.Minute); !strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
}
