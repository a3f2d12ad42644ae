// SPDX-License-Identifier: Apache-2.0

// Command closed-loop compares, side by side in one run, programs as they are,
// under `attune run`, and with the best setting given before they start; and
// programs without a problem with and without Attune.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// options are the command's flags.
type options struct {
	repeats      int
	seconds      float64
	plainSeconds float64
	only         string
}

// document is what -json writes.
type document struct {
	Machine  present.Machine `json:"machine"`
	Storms   []stormResult   `json:"storms"`
	Controls []controlResult `json:"controls"`
	Missing  []string        `json:"missing,omitempty"`
	Goals    []present.Goal  `json:"goals"`
}

func main() {
	var o options
	flag.IntVar(&o.repeats, "n", 5, "runs of each kind; medians are shown")
	flag.Float64Var(&o.seconds, "seconds", 10, "length of a tuned run")
	flag.Float64Var(&o.plainSeconds, "plain-seconds", 5, "length of a run with a fixed setting")
	flag.StringVar(&o.only, "only", "", "only programs with this in their name")
	d := &document{Machine: present.ThisMachine("libc6", "python3-numpy", "lammps", "openmpi-bin")}
	os.Exit(benchmark.Main("closed-loop", d.Machine, d, func(ctx context.Context) error {
		return d.measureAll(ctx, o)
	}))
}

func (d *document) measureAll(ctx context.Context, o options) error {
	scratch, err := os.MkdirTemp("", "attune-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	bench := bench{
		options: o,
		attune:  tuned.Attune{Binary: "bin/attune", Scratch: scratch},
	}
	programs := workload.Repository
	for _, s := range programs.Storms(ctx) {
		if !o.wants(s.Name) || d.leaveOut(s.Name, s.Missing) {
			continue
		}
		result, err := bench.storm(ctx, s)
		if err != nil {
			return err
		}
		d.Storms = append(d.Storms, result)
		d.Goals = append(d.Goals, result.goals()...)
	}
	for _, c := range programs.Controls(ctx) {
		if !o.wants(c.Name) || d.leaveOut(c.Name, c.Missing) {
			continue
		}
		result, err := bench.control(ctx, c)
		if err != nil {
			return err
		}
		d.Controls = append(d.Controls, result)
		d.Goals = append(d.Goals, result.goal())
	}
	return nil
}

func (o options) wants(name string) bool { return strings.Contains(name, o.only) }

// leaveOut notes a program that cannot run here.
func (d *document) leaveOut(name, missing string) bool {
	if missing != "" {
		d.Missing = append(d.Missing, name+": "+missing)
	}
	return missing != ""
}

// Print shows the figures and the goals.
func (d *document) Print() {
	printStorms(d.Storms)
	printControls(d.Controls)
	fmt.Println()
	present.PrintGoals(os.Stdout, d.Goals)
	for _, text := range d.Missing {
		fmt.Println("left out:", text)
	}
}
