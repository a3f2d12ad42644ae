// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// BenchmarkSample is one sample of a session in which many changes are kept, each in a process
// of its own, and others wait, for their turns or for a sibling's trial.
func BenchmarkSample(b *testing.B) {
	for _, bb := range []struct {
		kept, waiting int
		program       string
	}{{1, 0, ""}, {1000, 0, ""}, {1000, 200, ""}, {1000, 2000, "app"}} {
		b.Run(fmt.Sprintf("kept=%d/waiting=%d%s", bb.kept, bb.waiting, bb.program), func(b *testing.B) {
			c := New(Config{Mode: ModeTune})
			for _, name := range []string{"kept", "waiting"} {
				c.Step(0, TunletReady{Info: &attunev1.DescribeResponse{Name: name, Knobs: []*attunev1.Knob{{Name: "k1"}}}})
			}
			for process := range uint64(bb.kept + bb.waiting) {
				c.Step(0, ProcessStarted{Process: process + 1, Executable: "/bin/app", Program: bb.program})
				if process < uint64(bb.kept) {
					c.Step(0, Adopt{Held{ID: fmt.Sprint("old", process), Process: process + 1, Knob: "k1", Tunlet: "kept", Kept: true}})
					continue
				}
				c.Step(0, Propose{Tunlet: "waiting", Proposal: &attunev1.Proposal{
					Id: fmt.Sprint("p", process), Scope: fmt.Sprint(process), Changes: []*attunev1.Change{changeOf("k1", process+1)},
				}})
			}
			if n := len(c.line.active); n != bb.kept+bb.waiting {
				b.Fatalf("%d proposals are on their way", n)
			}
			b.ReportAllocs()
			at := time.Duration(0)
			for b.Loop() {
				at++
				c.Step(at, Sample{Tunlet: "kept", Scope: "app", Value: 1, At: at})
			}
		})
	}
}
