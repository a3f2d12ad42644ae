// SPDX-License-Identifier: Apache-2.0

// Command startup measures what `attune run` costs before and beside the
// program: the time to main, also of a packed program, the time of a command that
// does nothing, CPU time, and the memory of Attune and its tunlets.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
	"github.com/attune-hpc/attune/internal/clock"
)

// document is what -json writes; times in milliseconds, memory in MB.
type document struct {
	benchmark.Common
	MainPlain []float64          `json:"main_plain_ms"`
	MainTuned []float64          `json:"main_attune_ms"`
	TruePlain []float64          `json:"true_plain_ms"`
	TrueTuned []float64          `json:"true_attune_ms"`
	CPU       cpuTimes           `json:"cpu"`
	Packed    packedCost         `json:"packed"`
	PeakMB    map[string]float64 `json:"peak_mb"`
	repeats   int
}

func main() {
	repeats := flag.Int("n", 15, "runs of each kind; medians are shown")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "startup", Packages: []string{"libc6"}, Document: d,
		Measure: func(ctx context.Context) error {
			d.repeats = *repeats
			return d.measure(ctx)
		},
	}))
}

func (d *document) measure(ctx context.Context) error {
	attune := tuned.Attune{Binary: "bin/attune", Scratch: d.Scratch}
	programs := workload.Repository
	probe, err := programs.Compile(ctx, "startup_main") // it prints when its main began
	if err != nil {
		return err
	}
	if err := d.times(ctx, attune, probe); err != nil {
		return err
	}
	if err := d.Packed.measure(ctx, attune, probe, d.repeats); err != nil {
		return err
	}
	if err := d.memory(ctx, attune, programs); err != nil {
		return err
	}
	return d.CPU.measure(ctx, attune)
}

// times measures in turns, after one round that warms the file cache.
func (d *document) times(ctx context.Context, attune tuned.Attune, probe string) error {
	quiet := func(command ...string) []string {
		return append([]string{attune.Binary, "run", "--quiet", "--"}, command...)
	}
	for i := range d.repeats + 1 {
		var row [4]float64
		var err error
		for k, command := range [][]string{{probe}, quiet(probe), {"true"}, quiet("true")} {
			if k < 2 {
				row[k], err = timeToMain(ctx, command)
			} else {
				row[k], err = wholeTime(ctx, command)
			}
			if err != nil {
				return err
			}
		}
		if i == 0 {
			continue
		}
		d.MainPlain, d.MainTuned = append(d.MainPlain, row[0]), append(d.MainTuned, row[1])
		d.TruePlain, d.TrueTuned = append(d.TruePlain, row[2]), append(d.TrueTuned, row[3])
	}
	return nil
}

// timeToMain returns the milliseconds from just before the start of the
// command to the beginning of the probe's main.
func timeToMain(ctx context.Context, command []string) (float64, error) {
	before := clock.Monotonic()
	result, err := measure.Run(ctx, command)
	if err != nil {
		return 0, err
	}
	if len(result.Lines) != 1 {
		return 0, fmt.Errorf("%v: %d lines, want one", command, len(result.Lines))
	}
	main, err := strconv.ParseInt(result.Lines[0].Text, 10, 64)
	return measure.Milliseconds(time.Duration(main) - before), err
}

func wholeTime(ctx context.Context, command []string) (float64, error) {
	result, err := measure.Run(ctx, command)
	return measure.Milliseconds(result.Wall), err
}
