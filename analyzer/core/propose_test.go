// SPDX-License-Identifier: Apache-2.0

package core

import (
	"math"
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// What a tunlet predicts gets into reports and the knowledge store, which hold
// finite numbers only.
func TestPredictionsAreNumbers(t *testing.T) {
	tests := []struct {
		name             string
		gain, confidence float64
		refused          bool
	}{
		{"nothing predicted", 0, 0, false},
		{"a gain", 4, 0.5, false},
		{"a loss", 0.5, 1, false},
		{"no number", math.NaN(), 0.5, true},
		{"infinite", math.Inf(1), 0.5, true},
		{"negative", -1, 0.5, true},
		{"confidence that is no number", 4, math.NaN(), true},
		{"infinite confidence", 4, math.Inf(1), true},
		{"more than sure", 4, 7, true},
		{"negative confidence", 4, -0.5, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := New(Config{Mode: ModeTune})
			c.Step(0, TunletReady{Info: &attunev1.DescribeResponse{Name: "t", Knobs: []*attunev1.Knob{{Name: "k"}}}})
			c.Step(0, ProcessStarted{Process: 1, Executable: "/bin/app"})
			spec := proposalOf("p", "k", tt.gain)
			spec.Confidence = tt.confidence
			c.Step(0, Propose{Tunlet: "t", Proposal: spec})
			if refused := len(c.Refusals()) == 1; refused != tt.refused {
				t.Errorf("refused: %v, want %v", refused, tt.refused)
			}
		})
	}
}

// A change that is not what its knob is is refused, whatever its name.
func TestForeignActionsAreRefused(t *testing.T) {
	c := New(Config{Mode: ModeTune})
	c.Step(0, TunletReady{Info: &attunev1.DescribeResponse{Name: "t", Knobs: []*attunev1.Knob{{Name: "k"}}}})
	c.Step(0, ProcessStarted{Process: 1, Executable: "/bin/app"})
	spec := proposalOf("p", "k", 2)
	spec.GetChanges()[0].Action.GetSetting().Name = "glibc.malloc.top_pad"
	c.Step(0, Propose{Tunlet: "t", Proposal: spec})
	refused := c.Refusals()
	if len(refused) != 1 || refused[0].Reason != "knob k is setting k, and not what would set glibc.malloc.top_pad=?; its description says what it is" {
		t.Errorf("refused %+v", refused)
	}
}
