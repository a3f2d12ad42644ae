// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/tuned"
)

// What CPU time Attune takes: a run that ends soon, a longer one that does
// nothing, and a shell that starts many short processes.
const (
	cpuRepeats   = 5
	shortSleep   = "0.5"
	longSleep    = "4.5"
	between      = 4 * time.Second // of the two
	shortStarts  = 200
	startsScript = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"
)

// cpuTimes are CPU times of whole runs in milliseconds, one for each repeat.
type cpuTimes struct {
	// Short and Long are `attune run` of sleeping programs.
	Short []float64 `json:"short_ms"`
	Long  []float64 `json:"long_ms"`
	// LoopPlain and LoopTuned are of the shell.
	LoopPlain []float64 `json:"loop_plain_ms"`
	LoopTuned []float64 `json:"loop_attune_ms"`
}

func (c *cpuTimes) measure(ctx context.Context, attune tuned.Attune) error {
	run := func(command ...string) []string {
		return append([]string{attune.Binary, "run", "--quiet", "--"}, command...)
	}
	for range cpuRepeats {
		for _, m := range []struct {
			to      *[]float64
			command []string
		}{
			{&c.Short, run("sleep", shortSleep)},
			{&c.Long, run("sleep", longSleep)},
			{&c.LoopPlain, []string{"sh", "-c", startsScript}},
			{&c.LoopTuned, run("sh", "-c", startsScript)},
		} {
			result, err := measure.Run(ctx, m.command)
			if err != nil {
				return err
			}
			*m.to = append(*m.to, measure.Milliseconds(result.CPU))
		}
	}
	return nil
}

func (c *cpuTimes) print() {
	short, long := measure.Median(c.Short), measure.Median(c.Long)
	fmt.Printf("CPU time of a run of 0.5 s that does nothing: %.0f ms\n", short)
	fmt.Printf("CPU time of each further second: %.1f ms\n", (long-short)/between.Seconds())
	fmt.Printf("CPU time of each short process: %.2f ms, %.2f ms more than without Attune\n",
		measure.Median(c.LoopTuned)/shortStarts, (measure.Median(c.LoopTuned)-measure.Median(c.LoopPlain)-short)/shortStarts)
}
