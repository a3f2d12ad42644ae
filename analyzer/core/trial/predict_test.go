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
