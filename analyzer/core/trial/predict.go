// SPDX-License-Identifier: Apache-2.0

package trial

import "math"

// Prediction is how a model's prediction of a gain compares with what was
// measured.
type Prediction string

// The predictions.
const (
	// PredictionUnknown: nothing was predicted, or the gain cannot be told.
	PredictionUnknown Prediction = ""
	// PredictionHolds: the logarithms have the same sign and differ by no more
	// than a factor of two.
	PredictionHolds Prediction = "holds"
	// PredictionTooHigh: there is less of a gain, or none.
	PredictionTooHigh Prediction = "too_high"
	// PredictionTooLow: there is more.
	PredictionTooLow Prediction = "too_low"
	// PredictionWrong: there is a loss.
	PredictionWrong Prediction = "wrong"
)

// holdsFactor is how far, in logarithms, a measured gain may be from the one
// that was predicted: of 4 times, between 2 and 16 times. Models are rough; which
// of two changes to try first, and whether it is worth trying, they tell even so.
const holdsFactor = 2

// slightGain is what counts as no difference.
const slightGain = 1.02

// Compare compares a predicted gain, 0 for none, with the judgement: it does not hold only
// where it does not for any gain in the interval.
func (j *Judgement) Compare(predicted float64) Prediction {
	if j.Few || j.Before.Samples == 0 || j.After.Samples == 0 {
		return PredictionUnknown
	}
	least, most := ComparePrediction(predicted, j.Low), ComparePrediction(predicted, min(j.High, math.MaxFloat64))
	if least == most {
		return least
	}
	switch one := ComparePrediction(predicted, j.Gain); {
	case one == PredictionHolds, one == PredictionUnknown:
		return one
	case most == PredictionTooHigh: // and perhaps a loss
		return PredictionTooHigh
	}
	return PredictionUnknown
}

// ComparePrediction compares a predicted gain, 0 for none, with a measured one.
func ComparePrediction(predicted, measured float64) Prediction {
	if !(predicted > 1) || !(measured >= 0) || math.IsInf(measured, 1) {
		return PredictionUnknown
	}
	share := math.Log(measured) / math.Log(predicted)
	switch {
	case measured < 1/slightGain:
		return PredictionWrong
	case share < 1/float64(holdsFactor):
		return PredictionTooHigh
	case share > holdsFactor:
		return PredictionTooLow
	}
	return PredictionHolds
}
