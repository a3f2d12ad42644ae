// SPDX-License-Identifier: Apache-2.0

package search

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The ends of a search. [Search.Best] is its result.
var (
	// ErrSpent is returned when the budget of tries or time is spent.
	ErrSpent = errors.New("the budget of the search is spent")
	// ErrSettled is returned when nothing better is to be expected.
	ErrSettled = errors.New("the search has settled")
)

// Method is how the next point is chosen.
type Method int

// The methods.
const (
	// Bayesian is for few, noisy tries and any knobs.
	Bayesian Method = iota
	// NelderMead is for many tries of one or two numbers.
	NelderMead
)

const (
	defaultTries   = 20
	maxTries       = 500 // each Next takes time with the cube of them
	defaultMinGain = 0.01
)

// Options says what is searched, and for how long.
type Options struct {
	// Knobs to set.
	Knobs []Knob
	// Method; the zero value is Bayesian.
	Method Method
	// Start is tried first: what is in force. Nil: the middle.
	Start Point
	// Tries is the most that are made, 500 at most; 0: 20.
	Tries int
	// Time is the most that they may take together; 0: as long as they take.
	Time time.Duration
	// MinGain ends the search when less is to be expected of a further try, as a
	// share of the best; 0: 0.01.
	MinGain float64
	// Seed tells apart searches that are to take different ways.
	Seed uint64
}

// Trial is a point that was tried.
type Trial struct {
	// Point is the values.
	Point Point
	// Value is what it achieved: the mean, if it was tried several times. NaN: it
	// could not be tried.
	Value float64
	// Tries is how often.
	Tries int
}

// Search is one search. See the package for its use.
type Search struct {
	options Options
	space   space
	trials  []Trial
	tries   int
}

// New returns a search that has tried nothing. It fails for knobs without values,
// a start that is none of them, and budgets below zero or above what is allowed.
func New(o Options) (*Search, error) {
	s := &Search{options: o, space: o.Knobs}
	if err := s.space.check(); err != nil {
		return nil, err
	}
	s.options.Tries = cmp.Or(s.options.Tries, defaultTries)
	s.options.MinGain = cmp.Or(s.options.MinGain, defaultMinGain)
	switch {
	case o.Tries < 0 || o.Tries > maxTries || o.Time < 0 || o.MinGain < 0:
		return nil, fmt.Errorf("search: budget of %d tries in %v for a gain of %v: none of them below 0, and at most %d tries",
			o.Tries, o.Time, o.MinGain, maxTries)
	case o.Method != Bayesian && o.Method != NelderMead:
		return nil, fmt.Errorf("search: method %d is unknown", o.Method)
	case o.Start == nil:
		s.options.Start = s.middle()
	}
	if err := s.checkPoint(s.options.Start); err != nil {
		return nil, err
	}
	return s, nil
}

// middle is the point half-way along each knob.
func (s *Search) middle() Point {
	half := make([]float64, len(s.space))
	for i := range half {
		half[i] = 0.5
	}
	return s.space.point(half)
}

func (s *Search) checkPoint(p Point) error {
	if len(p) != len(s.space) {
		return fmt.Errorf("search: %d values for %d knobs", len(p), len(s.space))
	}
	for i, k := range s.space {
		if !k.has(p[i]) {
			return fmt.Errorf("search: knob %q has no value %v", k.Name, p[i])
		}
	}
	return nil
}

// Next returns the point to try next; elapsed is how long the search has taken so
// far. It may be one that was tried before: to look again is worth it where the
// objective varies much. Asked twice without an answer in between, it returns the
// same again. The error is ErrSpent or ErrSettled. With 30 trials a Bayesian
// search takes 13 ms for it (go test -bench Next).
func (s *Search) Next(elapsed time.Duration) (Point, error) {
	switch {
	case s.tries >= s.options.Tries, s.options.Time > 0 && elapsed >= s.options.Time:
		return nil, ErrSpent
	case s.options.Method == NelderMead:
		return s.nelderMead()
	}
	return s.bayesian()
}

// Tell says what a point achieved: more is better. NaN says that it could not be
// tried, and counts as a try that was as bad as the worst. The point need not be
// the one that was asked for. It fails for a point that is none.
func (s *Search) Tell(p Point, value float64) error {
	if err := s.checkPoint(p); err != nil {
		return err
	}
	if math.IsInf(value, 0) {
		value = math.NaN()
	}
	s.tries++
	t := s.trial(p)
	if t == nil {
		s.trials = append(s.trials, Trial{Point: slices.Clone(p), Value: value, Tries: 1})
		return nil
	}
	if known := float64(t.Tries); math.IsNaN(t.Value) || math.IsNaN(value) {
		t.Value = value // the last word counts
	} else {
		t.Value = (t.Value*known + value) / (known + 1)
	}
	t.Tries++
	return nil
}

// trial returns what is known of a point; nil: nothing.
func (s *Search) trial(p Point) *Trial {
	for i := range s.trials {
		if slices.Equal(s.trials[i].Point, p) {
			return &s.trials[i]
		}
	}
	return nil
}

// Trials returns what was tried, in the order of the first tries. The points are
// not to be modified.
func (s *Search) Trials() []Trial { return slices.Clone(s.trials) }

// Best returns the best trial; false if none succeeded. Bayesian searches judge by
// what the neighbours say as well, lest one lucky try wins.
func (s *Search) Best() (Trial, bool) {
	values := s.values()
	if values == nil {
		return Trial{}, false
	}
	if s.options.Method == Bayesian {
		values = fit(s.featuresOfTrials(), values, s.weights()).atTrials()
	}
	best := -1
	for i, t := range s.trials {
		if !math.IsNaN(t.Value) && (best < 0 || values[i] > values[best]) {
			best = i
		}
	}
	return s.trials[best], true
}

// values returns what each trial achieved, the worst for those that failed; nil if
// none succeeded.
func (s *Search) values() []float64 {
	worst := math.Inf(1)
	for _, t := range s.trials {
		if !math.IsNaN(t.Value) {
			worst = min(worst, t.Value)
		}
	}
	if math.IsInf(worst, 1) {
		return nil
	}
	out := make([]float64, len(s.trials))
	for i, t := range s.trials {
		out[i] = t.Value
		if math.IsNaN(t.Value) {
			out[i] = worst
		}
	}
	return out
}

// weights returns how often each point was tried.
func (s *Search) weights() []float64 {
	out := make([]float64, len(s.trials))
	for i, t := range s.trials {
		out[i] = float64(t.Tries)
	}
	return out
}

func (s *Search) featuresOfTrials() [][]float64 {
	out := make([][]float64, len(s.trials))
	for i, t := range s.trials {
		out[i] = s.space.features(t.Point)
	}
	return out
}
