// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

const (
	// noSlower is what a program may lose at most, by time with attune over time
	// without.
	noSlower = 1.02
	// eachOfBest is what share of the best setting a case reaches at least by itself.
	eachOfBest = 0.75
	// clearlyFaster is from where on nobody asks whether it was noise.
	clearlyFaster = 1.1
)

// result has one figure per run; rates in Unit, in whole runs per second where
// that is empty.
type result struct {
	Name   string `json:"name"`
	Tunlet string `json:"tunlet,omitempty"`
	// Debian says that it is an unmodified program of the distribution.
	Debian bool `json:"debian"`
	// Slowed is the most that its time may grow by, as a ratio; zero: noSlower.
	Slowed  float64   `json:"slowed,omitempty"`
	Unit    string    `json:"unit,omitempty"`
	Default []float64 `json:"default"`
	Tuned   []float64 `json:"tuned"`
	Best    []float64 `json:"best_static,omitempty"`
	// Reaction is the time from the beginning of the program's main loop to the
	// first change that was kept, seconds, of the runs that had one; negative
	// when the problem was seen before that.
	Reaction []float64 `json:"reaction_seconds"`
	// Predicted and Measured are what the tunlet said of that change, and what
	// Attune measured while it ran.
	Predicted []float64 `json:"predicted_gain"`
	Measured  []float64 `json:"measured_gain"`
	// Others counts the proposals of other tunlets than Tunlet that were tried,
	// in all runs, and OtherChanges lists them; of a control each is wrong.
	Others       int      `json:"other_proposals"`
	OtherChanges []string `json:"other_changes,omitempty"`
	// NotKept are Tunlet's own changes that were not kept, and why.
	NotKept []string `json:"not_kept,omitempty"`
	// NotLoaded are tunlets of the catalogue that some run was without.
	NotLoaded []string `json:"not_loaded,omitempty"`
}

// gain is the tuned speed over the default.
func (r result) gain() float64 { return measure.Median(measure.Ratios(r.Tuned, r.Default)) }

// ofBest is the tuned speed as a share of the best; NaN where none is known.
func (r result) ofBest() float64 { return measure.Median(measure.Ratios(r.Tuned, r.Best)) }

// reaction is the median; NaN when a run had no change that was kept.
func (r result) reaction() float64 {
	if len(r.Reaction) < len(r.Tuned) {
		return math.NaN()
	}
	return measure.Median(r.Reaction)
}

// goals are those of one case by itself.
func (r result) goals() []present.Goal {
	return []present.Goal{
		{Name: r.Name + ": tuned / best static", Value: present.Figure(r.ofBest()), Limit: eachOfBest, AtLeast: true},
		{Name: r.Name + ": problem's start to change", Value: present.Figure(r.reaction()), Unit: "s", Limit: 1},
	}
}

// goals are those of the cases that were run. What is promised of the catalogue as
// a whole is judged only where all of it was run.
func (d *document) goals(whole bool) (goals []present.Goal) {
	if whole {
		goals = append(d.means(), debianGoals(d.debian())...)
	}
	goals = append(goals,
		present.Goal{Name: "cases that cannot run here", Value: present.Figure(len(d.Missing))},
		present.Goal{Name: "cases that did not get through", Value: present.Figure(len(d.Failed))},
		present.Goal{Name: "cases that some tunlet was not loaded for", Value: present.Figure(d.incomplete())})
	if len(d.Controls) > 0 {
		wrong := 0
		for _, r := range d.Controls {
			wrong += r.Others
		}
		goals = append(goals, present.Goal{Name: "controls: wrong changes", Value: present.Figure(wrong), Limit: 0})
	}
	for _, r := range d.Controls {
		goals = append(goals, r.notSlowed())
	}
	return goals
}

// means are the goals over all programs with a problem.
func (d *document) means() []present.Goal {
	mean := func(name string, figure func(result) float64, limit present.Figure) present.Goal {
		value := stat.GeometricMean(each(d.Problems, figure), nil)
		return present.Goal{Name: "catalogue: " + name + ", geometric mean", Value: present.Figure(value), Limit: limit, AtLeast: true}
	}
	return []present.Goal{mean("tuned / default", result.gain, 4), mean("tuned / best static", result.ofBest, 0.9)}
}

func (r result) notSlowed() present.Goal {
	return present.Goal{Name: r.Name + ": time with / without attune", Value: present.Figure(1 / r.gain()), Limit: present.Figure(r.slowest())}
}

// slowest is what its time may grow by at most, as a ratio.
func (r result) slowest() float64 { return cmp.Or(r.Slowed, noSlower) }

// undecided says that the runs so far may be of a program that is slower than it may be as
// well as of one that is not.
func (r result) undecided() bool {
	low, high := measure.MedianInterval(measure.Ratios(r.Default, r.Tuned))
	return low <= r.slowest() && high > r.slowest()
}

// incomplete counts the programs that were not run with all tunlets.
func (d *document) incomplete() (n int) {
	for _, r := range slices.Concat(d.Problems, d.Controls) {
		if len(r.NotLoaded) > 0 {
			n++
		}
	}
	return n
}

// debian returns the unmodified programs of the distribution.
func (d *document) debian() (of []result) {
	for _, r := range slices.Concat(d.Problems, d.Controls) {
		if r.Debian {
			of = append(of, r)
		}
	}
	return of
}

func debianGoals(rows []result) []present.Goal {
	faster, slowest := 0, math.Inf(-1)
	for _, r := range rows {
		if r.Slowed == 0 {
			slowest = max(slowest, 1/r.gain())
		}
		if r.gain() >= clearlyFaster {
			faster++
		}
	}
	return []present.Goal{
		{Name: "Debian programs: number", Value: present.Figure(len(rows)), Limit: 8, AtLeast: true},
		{Name: fmt.Sprintf("Debian programs: at least %.1f times as fast", clearlyFaster), Value: present.Figure(faster), Limit: 4, AtLeast: true},
		{Name: "Debian programs: greatest time with / without attune, but for the limits", Value: present.Figure(slowest), Limit: noSlower},
	}
}

// each returns a figure of every row that has it.
func each(rows []result, figure func(result) float64) (of []float64) {
	for _, r := range rows {
		of = append(of, figure(r))
	}
	return measure.Known(of)
}
