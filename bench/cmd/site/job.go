// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/internal/testing/cluster"
)

// nodes is the number of nodes.
const nodes = 2

// ranks is twice as many as the nodes have CPUs: each has all of this machine's.
func ranks() int { return nodes * 2 * runtime.NumCPU() }

// rates is how fast LAMMPS was, steps per second.
type rates struct {
	// Whole is over the whole of its main loop, and Settled over the last half
	// of it.
	Whole   float64 `json:"whole"`
	Settled float64 `json:"settled"`
}

// job is the tuned job: its program, and what is set before it.
type job struct {
	program, settings string
	seconds           float64
}

// run submits the job as alice, with one of bob's beside it, and returns its rates.
func (j job) run(ctx context.Context, c *cluster.Cluster, other string) (rates, error) {
	input, err := os.ReadFile("bench/workloads/in.melt")
	if err != nil {
		return rates{}, err
	}
	if err := c.WriteFile(ctx, "/home/alice/in.melt", string(input)); err != nil {
		return rates{}, err
	}
	beside, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() {
		// As long as the other, so that it is there all the time.
		_, err := c.Submit(beside, cluster.Bob, "-n1 --overcommit", fmt.Sprintf("srun %s %g", other, j.seconds))
		ended <- err
	}()
	script := fmt.Sprintf("%s srun --mpi=pmix --overcommit %s -in in.melt -log none -var seconds %g", j.settings, j.program, j.seconds)
	out, err := c.Submit(ctx, cluster.Alice, fmt.Sprintf("-N%d -n%d --overcommit", nodes, ranks()), script)
	if err != nil {
		return rates{}, fmt.Errorf("%w\n%s", err, out)
	}
	if err := <-ended; err != nil {
		return rates{}, fmt.Errorf("the other user's job: %w", err)
	}
	return parse(out)
}

// tableLine is a line of the table in LAMMPS' output: CPU seconds, steps, temperature.
var tableLine = regexp.MustCompile(`^\s*([0-9.]+)\s+(\d+)\s+[0-9.]+\s*$`)

// parse reads the rates. Without enough lines in the table the whole is all that
// there is.
func parse(out string) (r rates, err error) {
	var all measure.Result
	var seconds, steps []float64
	for line := range strings.Lines(out) {
		all.Lines = append(all.Lines, measure.Line{Text: line})
		if m := tableLine.FindStringSubmatch(line); m != nil {
			seconds, steps = append(seconds, number(m[1])), append(steps, number(m[2]))
		}
	}
	if r.Whole, err = measure.LAMMPS().Rate(all); err != nil {
		return r, fmt.Errorf("LAMMPS: %w:\n%s", err, out)
	}
	r.Settled = r.Whole
	last := len(seconds) - 1
	for i := range seconds {
		if seconds[i] >= seconds[last]/2 && i < last {
			r.Settled = (steps[last] - steps[i]) / (seconds[last] - seconds[i])
			break
		}
	}
	return r, nil
}

// number reads what was matched as one.
func number(text string) float64 {
	value, _ := strconv.ParseFloat(text, 64) // it is one
	return value
}
