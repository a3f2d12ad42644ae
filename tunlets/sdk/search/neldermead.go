// SPDX-License-Identifier: Apache-2.0

package search

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/optimize"
)

const (
	// firstSimplex is the size of the first simplex, as a share of each range: wide
	// enough to leave a plateau of rounded values.
	firstSimplex = 0.25
	// patience is how many steps without gain, for each knob, end the search.
	patience = 4
	// mostEvaluations bounds one replay: on plateaus the same points come again.
	mostEvaluations = 5000
)

// nelderMead returns the next point of the simplex. It lets gonum's run anew, with
// the values that are known, up to the first that is not: so nothing has to wait
// between two questions.
func (s *Search) nelderMead() (Point, error) {
	var wanted Point
	problem := optimize.Problem{
		Func: func(x []float64) float64 {
			p := s.space.point(fold(x))
			t := s.trial(p)
			switch {
			case wanted != nil:
				return math.Inf(1)
			case t == nil:
				wanted = p
				return math.Inf(1)
			case math.IsNaN(t.Value):
				return math.Inf(1)
			}
			return -t.Value
		},
		Status: func() (optimize.Status, error) {
			if wanted != nil {
				return optimize.Success, nil
			}
			return optimize.NotTerminated, nil
		},
	}
	settings := &optimize.Settings{
		FuncEvaluations: mostEvaluations,
		Converger:       &optimize.FunctionConverge{Relative: s.options.MinGain / patience, Iterations: patience * len(s.space)},
	}
	_, err := optimize.Minimize(problem, s.space.unit(s.options.Start), settings, &optimize.NelderMead{SimplexSize: firstSimplex})
	if wanted == nil {
		return nil, errors.Join(ErrSettled, err)
	}
	return wanted, nil
}

// fold mirrors what lies outside of the unit cube into it: a simplex that was cut
// off at the edge would collapse.
func fold(x []float64) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		v = math.Abs(math.Mod(v, 2))
		out[i] = min(v, 2-v)
	}
	return out
}
