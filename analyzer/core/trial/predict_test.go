// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"math"
	"testing"
)

func TestComparePrediction(t *testing.T) {
	tests := []struct {
		predicted, measured float64
		want                Prediction
	}{
		{4, 4, PredictionHolds},
		{4, 2, PredictionHolds},
		{4, 16, PredictionHolds},
		{1.1, 1.06, PredictionHolds},
		{4, 1.9, PredictionTooHigh},
		{4, 1, PredictionTooHigh},
		{4, 0.99, PredictionTooHigh},
		{4, 17, PredictionTooLow},
		{4, 0.5, PredictionWrong},
		{4, 0, PredictionWrong},
		{0, 4, PredictionUnknown},
		{1, 4, PredictionUnknown},
		{math.NaN(), 4, PredictionUnknown},
		{4, math.Inf(1), PredictionUnknown},
	}
	for _, tt := range tests {
		if got := ComparePrediction(tt.predicted, tt.measured); got != tt.want {
			t.Errorf("predicted %v, measured %v: %q, want %q", tt.predicted, tt.measured, got, tt.want)
		}
	}
}

// A model is told to be wrong only where no gain in the interval fits it.
func TestComparePredictionWithInterval(t *testing.T) {
	tests := []struct {
		name            string
		gain, low, high float64
		few             bool
		want            Prediction
	}{
		{"as predicted", 1.4, 1.3, 1.5, false, PredictionHolds},
		{"a loss", 0.8, 0.7, 0.9, false, PredictionWrong},
		{"perhaps a loss", 0.9, 0.5, 1.6, false, PredictionUnknown},
		{"less, if any", 1.05, 0.9, 1.1, false, PredictionTooHigh},
		{"less, or as predicted", 1.1, 1.02, 1.4, false, PredictionUnknown},
		{"more", 3, 2.5, math.Inf(1), false, PredictionTooLow},
		{"nothing known", 0.5, 0, math.Inf(1), false, PredictionUnknown},
		{"too few events", 0.5, 0.4, 0.6, true, PredictionUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			j := Judgement{Gain: tt.gain, Low: tt.low, High: tt.high, Few: tt.few, Before: Estimate{Samples: 9}, After: Estimate{Samples: 9}}
			if got := j.Compare(1.4); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	if got := (&Judgement{Gain: 0.5, High: 0.6, Before: Estimate{Samples: 9}}).Compare(1.4); got != PredictionUnknown {
		t.Errorf("without samples after it: %q", got)
	}
}
