// SPDX-License-Identifier: Apache-2.0

// Command drain measures how many events of one application reach a tunlet's
// process, what that costs, and whether the losses beyond that are counted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/counter"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// load is a rate of events and a way to deliver them.
type load struct {
	name  string
	point string
	// program that makes them.
	program string
	rate    float64 // calls per second
	goal    float64 // how many of them are promised; 0: that losses are counted
	cpu     float64 // cores that controller and Analyzer may take; 0: not promised
	// kernel says that only uprobes can watch the function; how many hits of
	// an empty one the machine can make is measured as well then.
	kernel bool
}

const (
	summed      = "libc.so.6:labs@got"
	single      = "libc.so.6:labs@got@events"
	kernelCalls = "*:kernel_function@events"
)

// The rates are a twentieth above the goals: a program that is kept from
// running for a moment makes fewer calls than it was told to.
var loads = []load{
	{name: "summed in the application", point: summed, rate: 21e6, goal: 20e6, cpu: 0.25},
	{name: "one by one, a million", point: single, rate: 1.05e6, goal: 1e6, cpu: 0.5},
	{name: "one by one", point: single, rate: 3.15e6, goal: 3e6},
	{name: "one by one, too many", point: single, rate: 20e6},
	{name: "uprobes, one by one", point: kernelCalls, rate: 1.05e6, goal: 1e6, kernel: true},
	{name: "uprobes, too many", point: kernelCalls, rate: floodRate, kernel: true},
}

// floodRate is more than any processor can make hits of uprobes.
const floodRate = 8e6

const (
	seconds = 4 // of calls in a run
	threads = 2
)

// preparation is what the program gives others before its first call.
const preparation = time.Second

// figure is one load over all runs.
type figure struct {
	Name string `json:"name"`
	// Rate is how many calls the program made in a second, Delivered how many
	// of them came to the tunlet. Medians.
	Rate      present.Figure `json:"calls_per_second"`
	Delivered present.Figure `json:"delivered_per_second"`
	// Ceiling is how many hits of an empty BPF program the same threads make in
	// a second, with nothing beside them; 0: not asked. Median.
	Ceiling present.Figure `json:"empty_program_per_second,omitempty"`
	// CPU is the CPU time of controller and Analyzer together, their start
	// included, per second of calls. Median.
	CPU present.Figure `json:"cpu_share"`
	// Lost and Unaccounted are sums over all runs: calls that did not come, and
	// those of them that the tunlet was not told of.
	Lost        int64 `json:"lost"`
	Unaccounted int64 `json:"unaccounted"`
}

// document is what -json writes.
type document struct {
	benchmark.Common
	Figures []figure `json:"figures"`
	// Missing are loads that cannot be measured here, with the reason.
	Missing []string `json:"missing,omitempty"`
}

func main() {
	repeats := flag.Int("n", 5, "runs of each load; medians are shown")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "drain", Packages: []string{"libc6"}, Document: d,
		Measure: func(ctx context.Context) error { return d.measure(ctx, *repeats) },
	}))
}

func (d *document) measure(ctx context.Context, repeats int) error {
	programs := workload.Repository
	program, err := programs.Compile(ctx, "event_source", "-fno-builtin", "-pthread")
	if err != nil {
		return err
	}
	// The same with a function that only the kernel can watch: DMLib does not come into
	// what is linked statically.
	programs.Cache = filepath.Join(programs.Cache, "static")
	static, err := programs.Compile(ctx, "event_source", "-DKERNEL", "-static", "-pthread")
	if err != nil {
		return err
	}
	c, err := newCeiling(static)
	if err != nil {
		return err
	}
	defer c.close()
	for _, l := range loads {
		l.program = program
		if l.kernel {
			l.program = static
		}
		if l.kernel && c.missing != nil {
			d.Missing = append(d.Missing, fmt.Sprintf("%s: %v", l.name, c.missing))
			continue
		}
		if err := d.add(ctx, l, c, repeats); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
	}
	return nil
}

// command calls the program's function at some rate.
func command(program string, rate float64) []string {
	return []string{program, strconv.FormatFloat(rate, 'f', 0, 64), strconv.Itoa(seconds), strconv.Itoa(threads)}
}

// add runs one load and adds its figure and goals.
func (d *document) add(ctx context.Context, l load, c *ceiling, repeats int) error {
	attune, err := counter.Attune(ctx, d.Scratch, strings.Replace(l.point, "*", filepath.Base(l.program), 1))
	if err != nil {
		return err
	}
	f := figure{Name: l.name}
	var rates, delivered, shares, ceilings []float64
	for range repeats {
		if l.kernel {
			most, err := c.measure(ctx)
			if err != nil {
				return err
			}
			ceilings = append(ceilings, most)
		}
		r, err := attune.Run(ctx, command(l.program, l.rate))
		if err != nil {
			return err
		}
		made, came, err := counts(r, l.function())
		if err != nil {
			return err
		}
		rates = append(rates, float64(made.Hits)/seconds)
		delivered = append(delivered, float64(came.Hits)/seconds)
		shares = append(shares, r.Report.Overhead.ControllerCPUSeconds/seconds)
		f.Lost += made.Hits - came.Hits
		f.Unaccounted += abs(made.Hits - came.Hits - came.Lost)
		if late := lateness(r); late >= preparation {
			return fmt.Errorf("the point was in place %v after the program's start, which makes its first calls after %v: "+
				"the machine is too busy to measure anything", late, preparation)
		}
		if came.Lost == 0 && made != came {
			return fmt.Errorf("the program made %+v, the tunlet got %+v", made, came)
		}
	}
	f.Rate, f.Delivered, f.CPU = median(rates), median(delivered), median(shares)
	if l.kernel {
		f.Ceiling = median(ceilings)
	}
	d.Figures = append(d.Figures, f)
	d.addGoals(l, f)
	return nil
}

func median(values []float64) present.Figure { return present.Figure(measure.Median(values)) }

func abs(n int64) int64 { return max(n, -n) }

// function whose calls are counted.
func (l load) function() string {
	if l.kernel {
		return kernelFunction
	}
	return "labs"
}

// lateness is how long the program ran without the point.
func lateness(r tuned.Run) (late time.Duration) {
	for _, p := range r.Report.Points {
		late = max(late, time.Duration(p.LateSeconds*float64(time.Second)))
	}
	return late
}

// counts returns what the program says it did, and what the tunlet says it got
// of a function.
func counts(r tuned.Run, function string) (made, came counter.Sums, err error) {
	if made, err = said(r.Result); err != nil {
		return made, came, err
	}
	came, err = counter.Got(r, function)
	return made, came, err
}

// said returns what the program says it did.
func said(r measure.Result) (made counter.Sums, err error) {
	if len(r.Lines) == 0 {
		return made, errors.New("the program said nothing")
	}
	if _, err := fmt.Sscanf(r.Lines[0].Text, "calls %d sum %d", &made.Hits, &made.Sum); err != nil {
		return made, fmt.Errorf("the program said %q: %w", r.Lines[0].Text, err)
	}
	return made, nil
}
