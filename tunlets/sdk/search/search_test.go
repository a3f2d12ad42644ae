// SPDX-License-Identifier: Apache-2.0

package search_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/tunlets/sdk/search"
)

// subject is a known function.
type subject struct {
	name  string
	knobs []search.Knob
	f     func(p search.Point) float64
	best  float64
	noise float64 // standard deviation, as a share of best
	tries int
	// within is how near to the best it is to come, as a share, in nine of ten
	// searches.
	within float64
}

// subjects are shapes that knobs of programs have: a peak of a size over decades, a
// number of workers with a best in the middle, a choice that changes all, and
// Branin's function, which has three peaks.
func subjects() []subject {
	size := search.Knob{Name: "size", Kind: search.Integer, Min: 1, Max: 1 << 20, Log: true}
	share := search.Knob{Name: "share", Kind: search.Real, Min: 0, Max: 1}
	way := search.Knob{Name: "way", Kind: search.Choice, Choices: 4}
	peak := func(p search.Point) float64 { return 100 * math.Exp(-square(math.Log(p[0]/4096))/8) }
	// Morajko's model of a master and workers, with 1/Pi as objective.
	workers := func(p search.Point) float64 {
		time := 2 + ((p[0]-1)*0.5+1)*20 + 4000/p[0]
		return 1e6 / (p[0] * time * time / 4000)
	}
	most := 0.0
	for n := 1.0; n <= 64; n++ {
		most = max(most, workers(search.Point{n}))
	}
	choices := func(p search.Point) float64 {
		return []float64{20, 60, 100, 40}[int(p[0])] * (1 - square(p[1]-0.3))
	}
	branin := func(p search.Point) float64 {
		x, y := 15*p[0]-5, 15*p[1]
		v := square(y-5.1/(4*math.Pi*math.Pi)*x*x+5/math.Pi*x-6) + 10*(1-1/(8*math.Pi))*math.Cos(x) + 10
		return 100 - v
	}
	one := []search.Knob{{Name: "n", Kind: search.Integer, Min: 1, Max: 64}}
	return []subject{
		{name: "peak over decades", knobs: []search.Knob{size}, f: peak, best: 100, tries: 15, within: 0.05},
		{name: "peak over decades, noisy", knobs: []search.Knob{size}, f: peak, best: 100, noise: 0.05, tries: 25, within: 0.15},
		{name: "workers", knobs: one, f: workers, best: most, tries: 15, within: 0.03},
		{name: "choices", knobs: []search.Knob{way, share}, f: choices, best: 100, tries: 25, within: 0.05},
		{name: "branin", knobs: []search.Knob{share, share}, f: branin, best: 100 - 0.397887, tries: 40, within: 0.05},
	}
}

func square(v float64) float64 { return v * v }

// result runs a search to its end and returns the true value of its best point.
func result(t *testing.T, o search.Options, s subject) float64 {
	t.Helper()
	r := rand.New(rand.NewPCG(o.Seed, 99))
	one, err := search.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for {
		p, err := one.Next(0)
		if errors.Is(err, search.ErrSpent) || errors.Is(err, search.ErrSettled) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := one.Tell(p, s.f(p)+s.noise*s.best*r.NormFloat64()); err != nil {
			t.Fatal(err)
		}
	}
	best, ok := one.Best()
	if !ok {
		t.Fatal("nothing was found")
	}
	return s.f(best.Point)
}

func TestBayesianFindsTheBest(t *testing.T) {
	const searches, misses = 20, 2
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			var missed []float64
			for seed := range uint64(searches) {
				got := result(t, search.Options{Knobs: s.knobs, Tries: s.tries, Seed: seed}, s)
				if got < s.best-s.within*math.Abs(s.best) {
					missed = append(missed, got)
				}
			}
			if len(missed) > misses {
				t.Errorf("%d of %d searches miss %.4g by more than %.0f %%: %.4g", len(missed), searches, s.best, 100*s.within, missed)
			}
		})
	}
}

// A simplex goes to the next peak, from anywhere on its slopes.
func TestNelderMeadClimbs(t *testing.T) {
	share := search.Knob{Name: "share", Kind: search.Real, Min: 0, Max: 1}
	for _, s := range []subject{subjects()[0], subjects()[2], {
		name: "two numbers", knobs: []search.Knob{share, share}, best: 10, within: 0.05,
		f: func(p search.Point) float64 { return 10 - square(p[0]-0.8) - 3*square(p[1]-p[0]/2) },
	}} {
		t.Run(s.name, func(t *testing.T) {
			for _, at := range []float64{0.1, 0.5, 0.9} {
				start := make(search.Point, len(s.knobs))
				for i, k := range s.knobs {
					start[i] = math.Round((k.Min+at*(k.Max-k.Min))*1e3) / 1e3
					if k.Kind == search.Integer {
						start[i] = math.Round(start[i])
					}
				}
				o := search.Options{Knobs: s.knobs, Method: search.NelderMead, Tries: 60, Start: start, MinGain: 1e-4}
				if got := result(t, o, s); got < s.best-s.within*s.best {
					t.Errorf("from %v: %.5g, want %.5g", start, got, s.best)
				}
			}
		})
	}
}

// Whatever is told, the next point is one, the same when asked again, and the
// budget holds.
func TestAnyAnswers(t *testing.T) {
	knobs := []search.Knob{
		{Name: "a", Kind: search.Integer, Min: -3, Max: 3}, {Name: "b", Kind: search.Real, Min: 1e-9, Max: 1e9, Log: true},
		{Name: "c", Kind: search.Choice, Choices: 3}, {Name: "d", Kind: search.Integer, Min: 7, Max: 7},
	}
	answers := []float64{0, 1, -1, 1e300, -1e300, math.NaN(), math.Inf(1), 1e-300}
	for seed := range uint64(20) {
		for _, method := range []search.Method{search.Bayesian, search.NelderMead} {
			const tries = 12
			s, err := search.New(search.Options{Knobs: knobs, Method: method, Tries: tries, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(seed, 0))
			n := 0
			for ; ; n++ {
				p, err := s.Next(0)
				if err != nil {
					break
				}
				again, _ := s.Next(0)
				if !slices.Equal(p, again) {
					t.Fatalf("%v, then %v", p, again)
				}
				if err := s.Tell(p, answers[r.IntN(len(answers))]); err != nil {
					t.Fatalf("its own point: %v", err)
				}
			}
			if n > tries {
				t.Errorf("%d tries, at most %d are allowed", n, tries)
			}
			if best, ok := s.Best(); ok && math.IsNaN(best.Value) {
				t.Errorf("the best is one that failed: %+v", best)
			}
		}
	}
}

func TestBudgets(t *testing.T) {
	knobs := []search.Knob{{Name: "n", Kind: search.Integer, Min: 1, Max: 100}}
	s, err := search.New(search.Options{Knobs: knobs, Time: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(time.Minute - 1); err != nil {
		t.Errorf("within the time: %v", err)
	}
	if _, err := s.Next(time.Minute); !errors.Is(err, search.ErrSpent) {
		t.Errorf("after the time: %v", err)
	}
	if _, ok := s.Best(); ok {
		t.Error("a best without any try")
	}
	// Where nothing changes anything it ends early.
	tries := 0
	for ; tries < 20; tries++ {
		p, err := s.Next(0)
		if errors.Is(err, search.ErrSettled) {
			break
		}
		if err := s.Tell(p, 5); err != nil {
			t.Fatal(err)
		}
	}
	if tries >= 20 {
		t.Error("a search of what is flat goes on to the end")
	}
}

func TestBadOptions(t *testing.T) {
	good := search.Knob{Name: "n", Kind: search.Integer, Min: 1, Max: 4}
	for name, o := range map[string]search.Options{
		"no knobs":          {},
		"no range":          {Knobs: []search.Knob{{Min: 2, Max: 1}}},
		"not a number":      {Knobs: []search.Knob{{Min: math.NaN(), Max: 1}}},
		"endless":           {Knobs: []search.Knob{{Min: 0, Max: math.Inf(1)}}},
		"log of 0":          {Knobs: []search.Knob{{Min: 0, Max: 1, Log: true}}},
		"half an integer":   {Knobs: []search.Knob{{Kind: search.Integer, Min: 0.5, Max: 4}}},
		"no choices":        {Knobs: []search.Knob{{Kind: search.Choice}}},
		"unknown kind":      {Knobs: []search.Knob{{Kind: 9, Max: 1}}},
		"unknown method":    {Knobs: []search.Knob{good}, Method: 9},
		"too many tries":    {Knobs: []search.Knob{good}, Tries: 1000},
		"start out of it":   {Knobs: []search.Knob{good}, Start: search.Point{5}},
		"start of two":      {Knobs: []search.Knob{good}, Start: search.Point{1, 1}},
		"start between two": {Knobs: []search.Knob{good}, Start: search.Point{1.5}},
	} {
		if _, err := search.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s, err := search.New(search.Options{Knobs: []search.Knob{good}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Tell(search.Point{9}, 1); err == nil {
		t.Error("told of a point that is none: no error")
	}
}

func BenchmarkNext(b *testing.B) {
	s := subjects()[4]
	one, err := search.New(search.Options{Knobs: s.knobs, Tries: 40, MinGain: 1e-12})
	if err != nil {
		b.Fatal(err)
	}
	for range 30 {
		p, err := one.Next(0)
		if err != nil {
			b.Fatal(err)
		}
		if err := one.Tell(p, s.f(p)); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := one.Next(0); err != nil {
			b.Fatal(err)
		}
	}
}
