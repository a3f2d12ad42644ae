// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// samplesOf makes samples of the given lengths in milliseconds, one after the
// other; the value of each is its place.
func samplesOf(lengths ...int) []point {
	var out []point
	var at time.Duration
	for i, ms := range lengths {
		from := at
		at += time.Duration(ms) * time.Millisecond
		out = append(out, point{from, at, float64(i)})
	}
	return out
}

func TestAlike(t *testing.T) {
	tests := []struct {
		name         string
		a, b         []point
		wantA, wantB []float64
	}{
		{"the same length", samplesOf(50, 50, 50), samplesOf(50, 50), []float64{0, 1, 2}, []float64{0, 1}},
		{"ticks are not exact", samplesOf(50, 38, 61, 50), samplesOf(47, 120, 40), []float64{0, 1, 2, 3}, []float64{0, 1, 2}},
		{"joined by time", samplesOf(250, 250), samplesOf(50, 50, 100, 50, 150, 50), []float64{0, 1}, []float64{1.25, 3.75}},
		{"the other way round", samplesOf(100, 100, 100), samplesOf(200), []float64{0.5}, []float64{0}},
		{"an interval that is not known", samplesOf(0, 50, 50), samplesOf(50), []float64{0, 1, 2}, []float64{0}},
		{"nothing", nil, samplesOf(50), nil, []float64{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b := alike(tt.a, tt.b)
			if diff := cmp.Diff([][]float64{tt.wantA, tt.wantB}, [][]float64{a, b}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMeanIsOverTime(t *testing.T) {
	if got := mean(samplesOf(50, 150)); got != 0.75 {
		t.Errorf("mean %v, want 0.75", got)
	}
}
