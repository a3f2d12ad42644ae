// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

// turn is a figure and what measures it once, in nanoseconds per call.
type turn struct {
	figure
	once func(ctx context.Context, f *figure) (added float64, err error)
}

// take measures once. A tool that is not installed, or has failed, is said and not
// tried again; Attune is, if a point came too late for a program.
func (t *turn) take(ctx context.Context) error {
	if t.Missing != "" && !t.attune {
		return nil
	}
	added, err := t.once(ctx, &t.figure)
	if err != nil {
		t.Missing, added = err.Error(), math.NaN()
	}
	t.added = append(t.added, added)
	return ctx.Err()
}

// result is the figure of all turns. Attune has one if most of its turns were measured.
func (t *turn) result() figure {
	known := measure.Known(t.added)
	if t.Added = present.Figure(measure.Median(known)); t.attune && 2*len(known) > len(t.added) {
		t.Missing = ""
	}
	return t.figure
}
