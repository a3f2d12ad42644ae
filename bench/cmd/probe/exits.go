// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"path/filepath"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
)

// ends are rows about the end of a call: the same function as in the row of the
// entry patch, in programs of their own.
var ends = []struct {
	name, place string
	limit       present.Figure // nanoseconds
}{
	{"exit", "%return", 12},
	{"paired duration", "%time", 60},
}

// measureEnds runs the program in turns without and with each of the rows.
func (d *document) measureEnds(ctx context.Context, repeats int, program, scratch string) error {
	const function = "own_function"
	target := filepath.Base(program) + ":" + function
	plain, watched := map[string][]float64{}, make([]map[string][]float64, len(ends))
	last := make([]tuned.Run, len(ends))
	for range repeats {
		result, err := measure.Run(ctx, []string{program})
		if err != nil {
			return err
		}
		note(plain, result)
		for i, end := range ends {
			attune := tuned.Attune{Binary: "bin/attune", Scratch: scratch, Flags: []string{
				"--mode", "observe", "--probe", target + end.place,
			}}
			if last[i], err = attune.Run(ctx, []string{program}); err != nil {
				return err
			}
			if watched[i] == nil {
				watched[i] = map[string][]float64{}
			}
			note(watched[i], last[i].Result)
		}
	}
	for i, end := range ends {
		f := compare(function, plain[function], watched[i][function], last[i])
		f.Function += ", " + end.name
		d.Figures = append(d.Figures, f)
		d.Goals = append(d.Goals, present.Goal{Name: end.name + " by " + f.Mechanism + ", added per call", Value: f.Added, Unit: "ns", Limit: end.limit})
	}
	return nil
}
