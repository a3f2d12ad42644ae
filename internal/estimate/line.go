// SPDX-License-Identifier: Apache-2.0

package estimate

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Window is how many tasks, the last ones, are looked at by methods that need each of them.
const Window = 500

// fewest is how many tasks it takes for a line.
const fewest = 5

// recent keeps the last tasks, and what is the same for all methods that need them.
type recent struct {
	tasks         []Task
	least, most   float64   // peaks
	inputs, peaks []float64 // of the tasks whose input is known
}

func (r *recent) add(t Task) {
	if len(r.tasks) == Window {
		r.tasks = append(r.tasks[:0], r.tasks[1:]...)
	}
	r.tasks = append(r.tasks, t)
	r.least, r.most = t.Peak, t.Peak
	r.inputs, r.peaks = r.inputs[:0], r.peaks[:0]
	for _, t := range r.tasks {
		r.least, r.most = min(r.least, t.Peak), max(r.most, t.Peak)
		if t.Input > 0 {
			r.inputs, r.peaks = append(r.inputs, t.Input), append(r.peaks, t.Peak)
		}
	}
}

// line is a peak as a function of the input: at + slope·input.
type line struct{ at, slope float64 }

func (l line) of(input float64) float64 { return l.at + l.slope*input }

// residuals returns the greatest lack and the greatest excess of the line.
func (l line) residuals(inputs, peaks []float64) (lack, excess float64) {
	for i, input := range inputs {
		r := peaks[i] - l.of(input)
		lack, excess = max(lack, r), max(excess, -r)
	}
	return lack, excess
}

const (
	// overWeight is what an excess of the line counts, where a lack counts 1 (Ponder).
	overWeight = 0.02
	// rounds bounds the iteration, which mostly ends after five.
	rounds = 30
)

// leastSquares fits a line; it reports false where the inputs are all the same.
func leastSquares(inputs, peaks, weights []float64) (line, bool) {
	at, slope := stat.LinearRegression(inputs, peaks, weights, false)
	return line{at, slope}, !math.IsNaN(slope) && !math.IsInf(slope, 0) && !math.IsNaN(at)
}

// expectile fits the line with the least Σ w·(peak − line)², where w is 1 for tasks above
// the line and overWeight for those below, by least squares that are weighted anew until
// the weights stay (Newey and Powell, Econometrica 55(4), 1987).
func expectile(inputs, peaks []float64) (l line, fits bool) {
	weights := make([]float64, len(inputs))
	for i := range weights {
		weights[i] = 1
	}
	for changed, n := true, 0; changed && n < rounds; n++ {
		if l, fits = leastSquares(inputs, peaks, weights); !fits {
			return line{}, false
		}
		changed = false
		for i, input := range inputs {
			w := overWeight
			if peaks[i] > l.of(input) {
				w = 1
			}
			changed = changed || w != weights[i]
			weights[i] = w
		}
	}
	return l, fits
}

// Line is a line by input size that lies high (see [Ponder]), half of its greatest lack,
// and a margin (ours). It says nothing where fewer than five inputs are known.
type Line struct {
	recent
	margin       float64
	line         line
	fits         bool
	lack, excess float64
}

// NewLine returns a Line that adds at least a margin.
func NewLine(margin float64) *Line { return &Line{margin: margin} }

// Name implements Method.
func (l *Line) Name() string { return "line by input size" }

// Add implements Method.
func (l *Line) Add(t Task) {
	l.add(t)
	if l.fits = len(l.inputs) >= fewest; l.fits {
		l.line, l.fits = expectile(l.inputs, l.peaks)
		l.lack, l.excess = l.line.residuals(l.inputs, l.peaks)
	}
}

// Estimate implements Method.
func (l *Line) Estimate(input float64) (float64, bool) {
	amount := max(l.line.of(input)+l.lack/2, l.least)
	return amount + max(l.margin, (l.lack+l.excess)/float64(len(l.inputs))), l.fits && input > 0
}
