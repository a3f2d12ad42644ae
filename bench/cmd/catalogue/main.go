// SPDX-License-Identifier: Apache-2.0

// Command catalogue judges Attune with all its tunlets by programs, side by side
// in one run: those with a problem as they are, under `attune run`, and with the
// best setting given before they start; those without a problem with and without
// Attune; and of both kinds the unmodified ones of the distribution by themselves.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/catalogue"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// options are the command's flags.
type options struct {
	repeats      int
	inMean       int
	seconds      float64
	plainSeconds float64
	only         string
	list         bool
	each         bool
	reports      string
}

// document is what -json writes.
type document struct {
	benchmark.Common
	Problems []result `json:"problems"`
	Controls []result `json:"controls"`
	// Missing are cases that cannot run here, and Failed those that did not get
	// through, with the reason.
	Missing []string `json:"missing,omitempty"`
	Failed  []string `json:"failed,omitempty"`

	programs []catalogue.Program // of Problems
}

func main() {
	var o options
	flag.IntVar(&o.repeats, "n", 5, "runs of each kind; medians are shown")
	flag.IntVar(&o.inMean, "in-mean", 0, "runs of each kind of a program that counts in the means only; 0: as many as of the others")
	flag.Float64Var(&o.seconds, "seconds", 30, "length of a run under attune")
	flag.Float64Var(&o.plainSeconds, "plain-seconds", 5, "length of a run with a fixed setting")
	flag.StringVar(&o.only, "run", "", "only cases whose names match this `REGEXP`")
	flag.BoolVar(&o.each, "each", false, fmt.Sprintf("also hold each case to %.0f %% of the best setting, and its change to a second", 100*eachOfBest))
	flag.StringVar(&o.reports, "reports", "", "keep attune's reports in this `FOLDER`")
	flag.BoolVar(&o.list, "list", false, "name the cases, and run none")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "catalogue", Packages: []string{"libc6", "python3-numpy", "lammps", "openmpi-bin", "mpich"}, Document: d,
		Quick:   benchmark.Quick{"n": "5", "in-mean": "1", "seconds": "25", "plain-seconds": "3"},
		Measure: func(ctx context.Context) error { return d.measure(ctx, o) },
	}))
}

func (d *document) measure(ctx context.Context, o options) error {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	cases := catalogue.Matching(pattern)
	if len(cases) == 0 {
		return fmt.Errorf("no case matches %q; -list names them", o.only)
	}
	if o.list {
		for _, c := range cases {
			fmt.Println(c.Name)
		}
		return nil
	}
	if o.reports != "" {
		if err := os.MkdirAll(o.reports, 0o755); err != nil { // before hours of runs
			return err
		}
	}
	b := bench{options: o, attune: tuned.Attune{Binary: "bin/attune", Scratch: d.Scratch}}
	for _, c := range cases {
		if err := d.measureCase(ctx, b, c); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil { // the others can be measured all the same
			d.Failed = append(d.Failed, fmt.Sprintf("%s: %v", c.Name, err))
		}
	}
	if o.only == "" {
		if err := d.settleMeans(ctx, b); err != nil {
			return err
		}
	}
	d.Goals = d.goals(o.only == "")
	if o.each {
		for _, r := range d.Problems {
			d.Goals = append(d.Goals, r.goals()...)
		}
	}
	return nil
}

// measureCase adds a case's figures, or why there are none.
func (d *document) measureCase(ctx context.Context, b bench, c catalogue.Case) error {
	p, missing := c.Prepare(ctx, workload.Repository)
	if missing != "" {
		d.Missing = append(d.Missing, c.Name+": "+missing)
		return nil
	}
	r, err := b.measure(ctx, p)
	switch {
	case err != nil:
		return err
	case p.IsControl():
		d.Controls = append(d.Controls, r)
	default:
		d.Problems, d.programs = append(d.Problems, r), append(d.programs, p)
	}
	return nil
}

// settleMeans measures the programs that count in the means only as often as the others
// where fewer runs have missed a goal: one run of each may by chance. It does not stop as soon
// as a goal is met, which may be by chance as well.
func (d *document) settleMeans(ctx context.Context, b bench) error {
	missed := func(g present.Goal) bool { return !g.Met() }
	if len(d.Problems) == 0 || !slices.ContainsFunc(d.means(), missed) {
		return nil
	}
	for len(d.Problems[0].Tuned) < b.repeats {
		for i, p := range d.programs {
			if err := b.turn(ctx, p, &d.Problems[i]); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
	}
	return nil
}
