// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
)

// costs are what a tool adds in its turns; 0: the turn fails.
func costs(f figure, nanos ...float64) *turn {
	return &turn{f, func(context.Context, *figure) (float64, error) {
		next := nanos[0]
		if nanos = nanos[1:]; next == 0 {
			return 0, errors.New("it is not there")
		}
		return next, nil
	}}
}

func TestJudge(t *testing.T) {
	attune, peer := figure{Tool: "Attune", attune: true}, figure{Tool: "peer"}
	for _, tt := range []struct {
		name         string
		attune, peer []float64
		ratio        float64
		missing      float64
		met          bool
	}{
		{"cheaper in each turn", []float64{5, 6, 7}, []float64{10, 12, 14}, 0.5, 0, true},
		{"a turn of Attune's fails: the others are compared with those beside them", []float64{5, 0, 70}, []float64{10, 12, 140}, 0.5, 0, true},
		{"the last one does", []float64{5, 6, 0}, []float64{10, 12, 14}, 0.5, 0, true},
		{"most of Attune's do", []float64{0, 0, 7}, []float64{10, 12, 14}, 0, 1, false},
		{"dearer", []float64{20, 24, 28}, []float64{10, 12, 14}, 2, 0, false},
		{"the tool is not there", []float64{5, 6, 7}, []float64{0}, 0, 1, false},
		{"the tool fails later", []float64{5, 6, 7}, []float64{10, 0}, 0, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := &document{}
			ours, theirs := costs(attune, tt.attune...), costs(peer, tt.peer...)
			for range tt.attune {
				for _, turn := range []*turn{ours, theirs} {
					if err := turn.take(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			d.Figures = []figure{ours.result(), theirs.result()}
			d.judge()
			met := true
			for _, goal := range d.Goals {
				met = met && goal.Met()
			}
			if last := d.Goals[len(d.Goals)-1]; met != tt.met || float64(last.Value) != tt.missing {
				t.Errorf("met: %v, want %v: %+v", met, tt.met, d.Goals)
			}
			if tt.missing == 0 && float64(d.Goals[0].Value) != tt.ratio {
				t.Errorf("ratio %v, want %v", d.Goals[0].Value, tt.ratio)
			}
		})
	}
}
