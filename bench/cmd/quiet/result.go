// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"

	"github.com/attune-hpc/attune/bench/internal/catalogue"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/tuned"
)

// result has one figure per pair of runs; times in seconds.
type result struct {
	Name string `json:"name"`
	// Busy says that every core had something to do besides the program.
	Busy bool `json:"all_cores_busy"`
	// Plain and Tuned are the times of the program, without and with attune.
	Plain []float64 `json:"plain_seconds"`
	Tuned []float64 `json:"attune_seconds"`
	// Program is the CPU time of the program under attune, and Cost that of
	// everything else that attune started, with attune itself. Inside is what attune
	// says that its measure points took in the program, which is part of Program.
	Program []float64 `json:"program_cpu_seconds"`
	Cost    []float64 `json:"attune_cpu_seconds"`
	Inside  []float64 `json:"probe_seconds"`
	// Reported is what attune's report says of Cost.
	Reported []float64 `json:"reported_cpu_seconds"`
	// Changes are those that were made, each of them wrong.
	Changes []string `json:"changes,omitempty"`
}

// measure runs the pairs, every second one the other way round.
func (r *result) measure(ctx context.Context, attune tuned.Attune, p catalogue.Program, pairs int) (err error) {
	if r.Busy {
		stop, err := occupy(ctx, runtime.NumCPU()-1)
		if err != nil {
			return err
		}
		defer stop()
	}
	command := p.Default(0)
	steps := []func() error{
		func() error { return r.plain(ctx, command) },
		func() error { return r.tuned(ctx, attune, command) },
	}
	for i := range pairs {
		fmt.Fprintf(os.Stderr, "%s: pair %d of %d\n", r.title(), i+1, pairs)
		for _, step := range steps {
			if err := step(); err != nil {
				return err
			}
		}
		slices.Reverse(steps)
	}
	return nil
}

func (r *result) plain(ctx context.Context, command []string) error {
	run, err := measure.Run(ctx, command)
	r.Plain = append(r.Plain, run.Wall.Seconds())
	return err
}

// tuned runs the program under attune. The kernel's account of the whole run has all
// processes that attune has waited for; attune says what the program took of that, as
// it got it from the kernel.
func (r *result) tuned(ctx context.Context, attune tuned.Attune, command []string) error {
	run, err := attune.Run(ctx, command)
	if err != nil {
		return err
	}
	o := run.Report.Overhead
	if o.ProgramCPUSeconds <= 0 {
		return errors.New("the report does not say what the program took")
	}
	r.Tuned = append(r.Tuned, run.Wall.Seconds())
	r.Program = append(r.Program, o.ProgramCPUSeconds)
	r.Cost = append(r.Cost, run.CPU.Seconds()-o.ProgramCPUSeconds)
	r.Inside = append(r.Inside, o.ProbeSeconds)
	r.Reported = append(r.Reported, o.CPUSeconds)
	for _, c := range tuned.Changes(run.Report) {
		r.Changes = append(r.Changes, c.Tunlet+": "+c.Knob)
	}
	return nil
}

// occupy keeps some cores busy until stop.
func occupy(ctx context.Context, cores int) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var loops []*exec.Cmd
	stop = func() {
		cancel()
		for _, loop := range loops {
			_ = loop.Wait() // killed
		}
	}
	for range cores {
		loop := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			stop()
			return nil, err
		}
		loops = append(loops, loop)
	}
	return stop, nil
}

func (r *result) title() string {
	if r.Busy {
		return r.Name + ", all cores busy"
	}
	return r.Name
}

// beyond is by how much attune costs more than a share of what the program takes.
func (r *result) beyond() float64 {
	more := make([]float64, len(r.Cost))
	for i := range more {
		more[i] = r.Cost[i] + r.Inside[i] - share*r.Program[i]
	}
	return measure.Median(more)
}
