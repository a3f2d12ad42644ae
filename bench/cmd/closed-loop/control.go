// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// controlResult has one figure per run, seconds of the whole process.
type controlResult struct {
	Name  string    `json:"name"`
	Plain []float64 `json:"plain_seconds"`
	Tuned []float64 `json:"attune_seconds"`
	// Changes is the number of changes in all runs; none is wanted.
	Changes int `json:"changes"`
}

// control measures pairs; every second pair is the other way round.
func (b bench) control(ctx context.Context, c workload.Control) (controlResult, error) {
	r := controlResult{Name: c.Name}
	for i := range b.repeats {
		fmt.Fprintf(os.Stderr, "%s: pair %d of %d\n", c.Name, i+1, b.repeats)
		first, second := b.controlPlain, b.controlTuned
		if i%2 == 1 {
			first, second = second, first
		}
		if err := first(ctx, c, &r); err != nil {
			return r, err
		}
		if err := second(ctx, c, &r); err != nil {
			return r, err
		}
	}
	return r, nil
}

func (b bench) controlPlain(ctx context.Context, c workload.Control, r *controlResult) error {
	result, err := measure.Run(ctx, c.Command)
	r.Plain = append(r.Plain, result.Wall.Seconds())
	return err
}

func (b bench) controlTuned(ctx context.Context, c workload.Control, r *controlResult) error {
	run, err := b.attune.Run(ctx, c.Command)
	r.Tuned = append(r.Tuned, run.Wall.Seconds())
	r.Changes += len(run.Report.Changes)
	return err
}

func (r controlResult) ratio() float64 { return measure.Median(measure.Ratios(r.Tuned, r.Plain)) }

func (r controlResult) goal() present.Goal {
	return present.Goal{Name: r.Name + ": time with / without Attune", Value: present.Figure(r.ratio()), Limit: 1.02}
}

func printControls(results []controlResult) {
	if len(results) == 0 {
		return
	}
	fmt.Println()
	var table present.Table
	table.Row("program without the problem", "plain s", "attune s", "ratio", "changes")
	for _, r := range results {
		table.Row(r.Name, present.Number(measure.Median(r.Plain)), present.Number(measure.Median(r.Tuned)),
			fmt.Sprintf("%.3f", r.ratio()), fmt.Sprint(r.Changes))
	}
	table.Print(os.Stdout)
}
