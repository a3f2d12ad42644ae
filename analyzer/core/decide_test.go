// SPDX-License-Identifier: Apache-2.0

package core

import (
	"testing"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// At the end of the time, a change that had been kept goes for what its pairs show
// together, not for their median alone.
func TestDecideAgainAtTheEnd(t *testing.T) {
	tests := []struct {
		name  string
		gains []float64
		want  State
	}{
		{"less in all of them", []float64{0.9, 0.88, 0.91, 0.9, 0.89, 0.9, 0.92, 0.9}, StateUndone},
		{"less in most", []float64{0.9, 0.8, 0.91, 1.02, 0.85, 0.9, 0.92, 0.9}, StateUndone},
		{"less and more", []float64{0.9, 1.3, 0.9, 1.2, 0.8, 0.92, 1.1, 0.9}, StateKept},
		{"few", []float64{0.9, 0.88, 0.91, 0.9}, StateKept},
		{"a little less", []float64{0.97, 0.98, 0.97, 0.98, 0.97, 0.98, 0.97, 0.98}, StateKept},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := New(Config{Mode: ModeTune})
			turns := &turns{on: true, kept: true, within: []float64{1.5}}
			for _, gain := range tt.gains {
				turns.compared = append(turns.compared, pair{gain: gain})
			}
			p := &proposal{
				tunlet: &tunlet{info: &attunev1.DescribeResponse{}, minGain: c.cfg.MinGain}, spec: &attunev1.Proposal{},
				state: StateJudging, turns: turns, judgement: &Judgement{},
			}
			c.decideAgain(p, turns.findings(c.cfg.MinGain), c.turnAlpha(true), true)
			if p.state != tt.want {
				t.Errorf("%v, want %v", p.state, tt.want)
			}
		})
	}
}
