// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/attune-hpc/attune/bench/internal/measure"
)

// cost is what Attune's own processes take while nothing happens.
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
	before, err := taken(pid)
	if err != nil {
		return cost{}, err
	}
	start := time.Now()
	if err := measure.Pause(ctx, window); err != nil {
		return cost{}, err
	}
	after, err := taken(pid)
	after.CPU = (after.CPU - before.CPU) / time.Since(start).Seconds()
	return after, err
}

// taken sums up Attune's processes: the command, and those of its children that
// are tunlets. CPU is in seconds so far.
func taken(pid int) (sum cost, err error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return sum, err
	}
	for _, p := range all {
		stat, err := p.Stat()
		if err != nil || p.PID != pid && stat.PPID != pid {
			continue
		}
		line, err := p.CmdLine()
		if err != nil || len(line) == 0 || !strings.HasPrefix(filepath.Base(line[0]), "attune") {
			continue
		}
		memory, err := p.ProcSMapsRollup()
		if err != nil {
			return sum, fmt.Errorf("memory of process %d: %w", p.PID, err)
		}
		sum.CPU += stat.CPUTime()
		sum.MB += float64(memory.Pss) / 1e6
		sum.Processes++
	}
	if sum.Processes == 0 {
		return sum, fmt.Errorf("process %d has ended", pid)
	}
	return sum, nil
}
