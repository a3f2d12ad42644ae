// SPDX-License-Identifier: Apache-2.0

package estimate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// Ponder is the model of Lehmann et al., "Ponder: Online Prediction of Task Memory
// Requirements for Scientific Workflows" (2024). With fewer than five tasks it takes the
// most that was seen and a margin, if an earlier input was larger, and knows nothing
// otherwise. With more, and where peaks go with inputs (Pearson's r above 0.3), it takes a
// line that lies high, held to what was seen, and a margin of at least twice the deviation
// of the peaks from the line, in which tasks of a like input count most; else the most that
// was seen and a margin.
//
// Ours is that a task counts in the deviation by 1 − the distance of its input, as a share
// of the range of inputs, and all the same for an input that is farther away from all; and
// that the line is held below the most that was seen only for inputs within that range.
type Ponder struct {
	recent
	margin            float64
	smallest, largest float64 // inputs
	line              line
	fits              bool
}

// NewPonder returns a Ponder that adds at least a margin (in the paper: 128 MiB).
func NewPonder(margin float64) *Ponder { return &Ponder{margin: margin} }

// correlated is Pearson's r above which peaks go with inputs.
const correlated = 0.3

// Name implements Method.
func (p *Ponder) Name() string { return "Ponder" }

// Add implements Method.
func (p *Ponder) Add(t Task) {
	p.add(t)
	if len(p.inputs) == 0 {
		return
	}
	p.smallest, p.largest = slices.Min(p.inputs), slices.Max(p.inputs)
	p.fits = len(p.inputs) >= fewest && stat.Correlation(p.inputs, p.peaks, nil) > correlated
	if p.fits {
		p.line, p.fits = expectile(p.inputs, p.peaks)
	}
}

// Estimate implements Method.
func (p *Ponder) Estimate(input float64) (float64, bool) {
	switch {
	case len(p.tasks) == 0, len(p.tasks) < fewest && (input == 0 || input > p.largest):
		return 0, false
	case !p.fits, input == 0:
		return p.most + p.margin, true
	}
	amount := max(p.line.of(input), p.least)
	if p.smallest <= input && input <= p.largest {
		amount = min(amount, p.most)
	}
	return amount + max(p.margin, 2*p.deviation(input)), true
}

// deviation is that of the peaks from the line, in the unit of the peaks.
func (p *Ponder) deviation(input float64) float64 {
	reach := p.largest - p.smallest
	far := input >= p.largest+reach || input <= p.smallest-reach
	var squares, weights float64
	for i, x := range p.inputs {
		w := 1.0
		if !far {
			w = max(1-math.Abs(x-input)/reach, 0)
		}
		off := p.peaks[i] - p.line.of(x)
		squares += w * off * off
		weights += w
	}
	return math.Sqrt(squares / weights)
}
