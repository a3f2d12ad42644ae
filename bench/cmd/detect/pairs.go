// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

const (
	// pairsTaken is how often each way is measured, in turn with the others.
	pairsTaken = 7
	// pairRuns is how many processes are found in a session each time.
	pairRuns = 20
)

// cost is what a way of serving sessions costs: one figure for each time that it was
// measured, in milliseconds.
type cost struct {
	Way string `json:"way"`
	// Exec is from the exec of a process that is found to when the controller knows that it
	// is instrumented, the median of the processes of a session.
	Exec []float64 `json:"exec_ms"`
	// Start is the same of the first process, with which the session begins.
	Start []float64 `json:"start_ms"`

	inside bool // see newNode
}

// compare measures both ways in turn.
func compare(ctx context.Context, dir string, p programs) (costs []cost, err error) {
	costs = []cost{
		{Way: "in this process", inside: true},
		{Way: "in a process of its own"},
	}
	for round := range pairsTaken {
		for i := range costs {
			c := &costs[(i+round)%len(costs)]
			s, first, err := timeStarts(ctx, dir, c.inside, p, pairRuns)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Way, err)
			}
			c.Exec, c.Start = append(c.Exec, float64(quantile(s.Known, 0.5))), append(c.Start, first)
		}
	}
	return costs, nil
}

// more is by how much one of two is more, the median of the pairs.
func more(one, than []float64) present.Figure {
	return present.Figure(measure.Median(measure.Differences(one, than)))
}
