// SPDX-License-Identifier: Apache-2.0

package search

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// candidates is at how many places, drawn anew each time, the improvement is
	// expected, and near how many of them in the neighbourhood of the best.
	candidates, near = 800, 200
	// nearby is the size of that neighbourhood, as a share of each range.
	nearby = 0.07
	// leastFirst is the least number of points that are spread before anything is
	// known, perKnob how many of them for each knob.
	leastFirst, perKnob = 3, 2
)

// bayesian returns the point of the greatest expected improvement, after some that
// are spread over the space.
func (s *Search) bayesian() (Point, error) {
	if p := s.first(); p != nil {
		return p, nil
	}
	values := s.values()
	if values == nil { // nothing succeeded so far
		return s.scattered(), nil
	}
	model := fit(s.featuresOfTrials(), values, s.weights())
	best, at := math.Inf(-1), 0
	for i, v := range model.atTrials() {
		if v > best {
			best, at = v, i
		}
	}
	p, gain := s.promising(model, best, s.trials[at].Point)
	if gain < s.options.MinGain*math.Abs(best) {
		return nil, ErrSettled
	}
	return p, nil
}

// first returns the next of the points that come before there is a model; nil if
// they were tried. They are the start and a Latin hypercube.
func (s *Search) first() Point {
	n := max(leastFirst, perKnob*len(s.space))
	if n = min(n, max(1, s.options.Tries/2)); s.tries >= n {
		return nil
	}
	if s.tries == 0 {
		return s.options.Start
	}
	r := rand.New(rand.NewPCG(s.options.Seed, 0))
	unit := make([]float64, len(s.space))
	for i := range unit {
		stratum := r.Perm(n)[s.tries]
		unit[i] = (float64(stratum) + r.Float64()) / float64(n)
	}
	return s.space.point(unit)
}

// random is of this try: the same each time it is asked for.
func (s *Search) random() *rand.Rand {
	return rand.New(rand.NewPCG(s.options.Seed, uint64(s.tries)+1))
}

// scattered returns any point.
func (s *Search) scattered() Point {
	return s.space.point(anywhere(s.random(), len(s.space)))
}

func anywhere(r *rand.Rand, n int) []float64 {
	unit := make([]float64, n)
	for i := range unit {
		unit[i] = r.Float64()
	}
	return unit
}

// promising returns the candidate whose improvement over best is expected to be the
// greatest, and that improvement.
func (s *Search) promising(model *process, best float64, around Point) (Point, float64) {
	r := s.random()
	center := s.space.unit(around)
	var found Point
	most := math.Inf(-1)
	for i := range candidates + near {
		unit := anywhere(r, len(s.space))
		if i >= candidates {
			for j := range unit {
				if s.space[j].Kind != Choice || r.IntN(2) == 0 {
					unit[j] = min(max(center[j]+nearby*r.NormFloat64(), 0), 1)
				}
			}
		}
		p := s.space.point(unit)
		mean, deviation := model.at(s.space.features(p))
		if gain := expected(mean, deviation, best); gain > most {
			found, most = p, gain
		}
	}
	return found, most
}

// expected returns the expected improvement over best of a normally distributed
// value (Jones, Schonlau and Welch 1998, equation 15).
func expected(mean, deviation, best float64) float64 {
	if deviation <= 0 {
		return max(mean-best, 0)
	}
	z := (mean - best) / deviation
	return (mean-best)*distuv.UnitNormal.CDF(z) + deviation*distuv.UnitNormal.Prob(z)
}
