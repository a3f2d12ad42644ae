// SPDX-License-Identifier: Apache-2.0

// Command probe prints what counting the calls of a function costs per call,
// by the mechanism that serves it: entry patch, GOT stub, uprobe.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
	"github.com/attune-hpc/attune/controller/bpf"
)

// figure is one function.
type figure struct {
	Function  string         `json:"function"`
	Mechanism string         `json:"mechanism"`
	Reason    string         `json:"reason,omitempty"`
	Plain     present.Figure `json:"plain_ns"`
	Counted   present.Figure `json:"counted_ns"`
	Added     present.Figure `json:"added_ns"`
}

// document is what -json writes.
type document struct {
	benchmark.Judgement
	Machine present.Machine `json:"machine"`
	Figures []figure        `json:"figures"`
	Floors  []floor         `json:"floors"`
}

// programs under test.
var programs = workload.Repository

func main() {
	repeats := flag.Int("n", 7, "runs with and without; medians are shown")
	alone := flag.Bool("uprobes", false, "measure only what uprobes cost by themselves")
	d := &document{Machine: present.ThisMachine("libc6")}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "probe", Machine: d.Machine, Quick: benchmark.Quick{"n": "5"}, Document: d,
		Measure: func(ctx context.Context) error {
			if *alone {
				return d.measureFloors(ctx, *repeats)
			}
			return d.measure(ctx, *repeats)
		},
	}))
}

// measure runs the program in turns without and with counting.
func (d *document) measure(ctx context.Context, repeats int) error {
	scratch, err := os.MkdirTemp("", "attune-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	program, err := programs.ProbedCalls(ctx, "")
	if err != nil {
		return err
	}
	own := filepath.Base(program)
	attune := tuned.Attune{Binary: "bin/attune", Scratch: scratch, Flags: []string{
		"--mode", "observe", "--probe", own + ":own_function", "--probe", "libc.so.6:labs", "--probe", own + ":kernel_function",
	}}
	plain, counted := map[string][]float64{}, map[string][]float64{}
	var last tuned.Run
	for range repeats {
		result, err := measure.Run(ctx, []string{program})
		if err != nil {
			return err
		}
		if last, err = attune.Run(ctx, []string{program}); err != nil {
			return err
		}
		note(plain, result)
		note(counted, last.Result)
	}
	for _, function := range []string{"own_function", "labs", "kernel_function"} {
		d.add(function, plain[function], counted[function], last)
	}
	if err := d.measureEnds(ctx, repeats, program, scratch); err != nil {
		return err
	}
	return d.measureFloors(ctx, repeats)
}

// measureFloors measures uprobes by themselves where this user may.
func (d *document) measureFloors(ctx context.Context, repeats int) error {
	floors, err := measureFloor(ctx, programs, repeats)
	if errors.Is(err, bpf.ErrUnsupported) {
		fmt.Fprintln(os.Stderr, "probe: uprobes are not measured:", err)
		return nil
	}
	d.Floors, d.Goals = floors, append(d.Goals, floorGoals(floors)...)
	return err
}

// note takes down the lines "FUNCTION NANOSECONDS" of a run.
func note(nanos map[string][]float64, result measure.Result) {
	for _, line := range result.Lines {
		var function string
		var value float64
		if n, err := fmt.Sscan(line.Text, &function, &value); n == 2 && err == nil {
			nanos[function] = append(nanos[function], value)
		}
	}
}

// inside are the most nanoseconds that counting may add to a call of a function
// that can be counted inside the process.
var inside = map[string]present.Figure{"own_function": 12, "labs": 12}

func (d *document) add(function string, plain, counted []float64, last tuned.Run) {
	f := compare(function, plain, counted, last)
	d.Figures = append(d.Figures, f)
	if limit, ok := inside[function]; ok {
		d.Goals = append(d.Goals, present.Goal{Name: function + ", counted by " + f.Mechanism + ", added per call", Value: f.Added, Unit: "ns", Limit: limit})
	}
}

// compare returns the figure of a function. What no point has counted in the last
// run was not measured.
func compare(function string, plain, counted []float64, last tuned.Run) figure {
	f := figure{
		Function: function, Mechanism: "none", Added: present.Figure(math.NaN()),
		Plain: present.Figure(measure.Median(plain)), Counted: present.Figure(measure.Median(counted)),
	}
	for _, p := range last.Report.Points {
		if strings.Contains(p.Target, ":"+function) && p.Hits > 0 {
			f.Mechanism, f.Reason, f.Added = p.Mechanism, p.Reason, f.Counted-f.Plain
		}
	}
	return f
}

// Print shows the figures and the goals.
func (d *document) Print() {
	fmt.Println()
	var table present.Table
	table.Row("function", "mechanism", "ns", "counted", "added")
	for _, f := range d.Figures {
		table.Row(f.Function, f.Mechanism, present.Number(float64(f.Plain)), present.Number(float64(f.Counted)), present.Number(float64(f.Added)))
	}
	table.Print(os.Stdout)
	fmt.Println()
	printFloors(os.Stdout, d.Floors)
}
