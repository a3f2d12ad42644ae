// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// bench runs programs in all variants.
type bench struct {
	options
	attune tuned.Attune
}

// stormResult has one figure per run; rates in Unit.
type stormResult struct {
	Name    string    `json:"name"`
	Tunlet  string    `json:"tunlet"`
	Unit    string    `json:"unit"`
	Default []float64 `json:"default"`
	Tuned   []float64 `json:"tuned"`
	Best    []float64 `json:"best_static"`
	// Reaction is the time from the beginning of the program's main loop to
	// the change, seconds; negative when the trouble was seen before that.
	Reaction []float64 `json:"reaction_seconds"`
}

// storm measures one program in turns, so that a machine that changes its
// speed changes it for all.
func (b bench) storm(ctx context.Context, s workload.Storm) (stormResult, error) {
	r := stormResult{Name: s.Name, Tunlet: s.Tunlet, Unit: s.Unit}
	for i := range b.repeats {
		fmt.Fprintf(os.Stderr, "%s: run %d of %d\n", s.Name, i+1, b.repeats)
		if err := b.stormOnce(ctx, s, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (b bench) stormOnce(ctx context.Context, s workload.Storm, r *stormResult) error {
	plain, err := b.rate(ctx, s)
	if err != nil {
		return err
	}
	run, err := b.attune.Run(ctx, s.Command(b.seconds))
	if err != nil {
		return err
	}
	rate, err := s.Format.Rate(run.Result)
	if err != nil {
		return fmt.Errorf("%s under attune: %w", s.Name, err)
	}
	best, err := b.rate(ctx, s, s.BestSettings...)
	if err != nil {
		return err
	}
	r.Default = append(r.Default, plain)
	r.Tuned = append(r.Tuned, rate)
	r.Best = append(r.Best, best)
	if at, ok := tuned.FirstKept(tuned.Changes(run.Report)); ok {
		r.Reaction = append(r.Reaction, at.Sub(s.Format.Beginning(run.Result)).Seconds())
	}
	return nil
}

func (b bench) rate(ctx context.Context, s workload.Storm, settings ...string) (float64, error) {
	result, err := measure.Run(ctx, s.Command(b.plainSeconds), settings...)
	if err != nil {
		return 0, err
	}
	rate, err := s.Format.Rate(result)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", s.Name, err)
	}
	return rate, nil
}

// ofBest is the tuned speed as a share of the best.
func (r stormResult) ofBest() float64 { return measure.Median(measure.Ratios(r.Tuned, r.Best)) }

// gain is the tuned speed over the default.
func (r stormResult) gain() float64 { return measure.Median(measure.Ratios(r.Tuned, r.Default)) }

// reaction is the median; NaN when a run made no change that was kept.
func (r stormResult) reaction() float64 {
	if len(r.Reaction) < len(r.Tuned) {
		return math.NaN()
	}
	return measure.Median(r.Reaction)
}

func (r stormResult) goals() []present.Goal {
	return []present.Goal{
		{Name: r.Name + ": tuned / best static", Value: present.Figure(r.ofBest()), Limit: 0.85, AtLeast: true},
		{Name: r.Name + ": trouble's start to change", Value: present.Figure(r.reaction()), Unit: "s", Limit: 1},
	}
}

func printStorms(results []stormResult) {
	if len(results) == 0 {
		return
	}
	fmt.Println()
	var table present.Table
	table.Row("program", "unit", "default", "attune run", "best static", "attune/best", "gain", "changed after", "kept in")
	for _, r := range results {
		after := "-"
		if len(r.Reaction) > 0 {
			after = time.Duration(measure.Median(r.Reaction) * float64(time.Second)).Round(10 * time.Millisecond).String()
		}
		table.Row(r.Name, r.Unit,
			present.Number(measure.Median(r.Default)), present.Number(measure.Median(r.Tuned)), present.Number(measure.Median(r.Best)),
			fmt.Sprintf("%.0f %%", 100*r.ofBest()), present.Times(r.gain()), after,
			fmt.Sprintf("%d of %d", len(r.Reaction), len(r.Tuned)))
	}
	table.Print(os.Stdout)
}
