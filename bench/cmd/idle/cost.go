// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
)

// cost is what Attune's own processes take in a window in which nothing happens.
type cost struct {
	// CPU is CPU time per time: 1 is a core.
	CPU float64 `json:"cpu"`
	// MB is memory, with what processes share divided among them.
	MB float64 `json:"mb"`
	// Processes is how many there are.
	Processes int `json:"processes"`
}

// costOf starts a command and looks at it from outside.
func costOf(ctx context.Context, line []string, window time.Duration) (cost, error) {
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Env = measure.Environment()
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	c, err := look(ctx, cmd.Process.Pid, window)
	return c, errors.Join(err, cmd.Wait())
}

func look(ctx context.Context, pid int, window time.Duration) (cost, error) {
	if err := measure.Pause(ctx, settled); err != nil {
		return cost{}, err
	}
	before, err := measure.TreeOf(pid, program)
	if err != nil {
		return cost{}, err
	}
	start := time.Now()
	if err := measure.Pause(ctx, window); err != nil {
		return cost{}, err
	}
	after, err := measure.TreeOf(pid, program)
	share := (after.CPU - before.CPU).Seconds() / time.Since(start).Seconds()
	return cost{CPU: share, MB: after.MB, Processes: after.Processes}, err
}

// cpu and mb are the figures of all windows.
func cpu(all []cost) (figures []float64) {
	for _, c := range all {
		figures = append(figures, c.CPU)
	}
	return figures
}

func mb(all []cost) (figures []float64) {
	for _, c := range all {
		figures = append(figures, c.MB)
	}
	return figures
}
