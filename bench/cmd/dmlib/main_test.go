// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/attune-hpc/attune/bench/internal/present"
)

// all has a figure for each promise, which is kept.
func all() (d document) {
	for _, p := range promises() {
		d.Figures = append(d.Figures, figure{Operation: p.operation, Mode: p.mode, Ratio: 1})
	}
	return d
}

func met(d document) bool {
	return !slices.ContainsFunc(d.goals(), func(g present.Goal) bool { return !g.Met() })
}

func TestLostRecordsMiss(t *testing.T) {
	for _, tt := range []struct {
		mode string
		lost float64
		met  bool
	}{
		{"tracing", 0, true},
		{"tracing", 0.5, false},
		{"unread", 0.5, true}, // which is what it is for
	} {
		d := all()
		d.Figures = append(d.Figures, figure{Operation: "lock+unlock", Mode: "unread"})
		for i := range d.Figures {
			if d.Figures[i].Mode == tt.mode {
				d.Figures[i].LostShare = tt.lost
			}
		}
		if met(d) != tt.met {
			t.Errorf("%s, %v lost: %+v", tt.mode, tt.lost, d.goals())
		}
	}
}

// A promise of which nothing was measured is not kept.
func TestMissingFiguresMiss(t *testing.T) {
	for i, p := range promises() {
		d := all()
		if d.Figures[i].Operation = "renamed"; met(d) {
			t.Errorf("%s, %s was not measured: %+v", p.operation, p.mode, d.goals())
		}
	}
}
