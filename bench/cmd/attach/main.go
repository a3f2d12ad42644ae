// SPDX-License-Identifier: Apache-2.0

// Command attach measures how long it takes from the request for a hundred
// measure points in a running program until each of them has delivered its
// first event, and what taking them out keeps others waiting.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// figure is one way to put points into one program; milliseconds.
type figure struct {
	Program string `json:"program"`
	Way     string `json:"way"`
	// Mechanisms says by what the points of the last run were served.
	Mechanisms string `json:"mechanisms"`
	// Placed is until the last point was in place, First until the first hit
	// of the last one had come to the client.
	Placed    present.Figure `json:"placed_median_ms"`
	First     present.Figure `json:"first_event_median_ms"`
	FirstMost present.Figure `json:"first_event_most_ms"`
	// Next is until another point's first hit has come that was asked for when
	// the hundred were given up: the kernel takes them out meanwhile.
	Next present.Figure `json:"next_point_median_ms"`
}

// document is what -json writes.
type document struct {
	benchmark.Common
	Figures []figure `json:"figures"`
}

// hundred is how many points are asked for at a time.
const hundred = 100

// soon is what a hundred may take in a program with DMLib, and late what they may in one
// without; milliseconds.
const (
	soon = 100
	late = 300
)

func main() {
	repeats := flag.Int("n", 7, "runs of each; medians are shown")
	only := flag.String("only", "", "only programs and ways with this in their name")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "attach", Packages: []string{"libc6", "python3-minimal"}, Quick: benchmark.Quick{"n": "5"}, Document: d,
		Measure: func(ctx context.Context) error { return d.measure(ctx, *repeats, *only) },
	}))
}

func (d *document) measure(ctx context.Context, repeats int, only string) error {
	all, err := rows(ctx, workload.Repository)
	if err != nil {
		return err
	}
	var found []string // python's functions
	for _, r := range all {
		if !strings.Contains(r.name+" "+r.way.name, only) {
			continue
		}
		if r.functions == nil {
			if found == nil {
				if found, err = r.find(ctx); err != nil {
					return fmt.Errorf("%s: %w", r.name, err)
				}
			}
			r.functions = found
		}
		if err := d.add(ctx, r, repeats); err != nil {
			return fmt.Errorf("%s, %s: %w", r.name, r.way.name, err)
		}
	}
	return nil
}

// add measures a row, each time with a program and a node that are new.
func (d *document) add(ctx context.Context, r row, repeats int) error {
	var placed, first, next []float64
	var last seen
	for range repeats {
		all, then, err := r.once(ctx)
		if err != nil {
			return err
		}
		placed, first = append(placed, measure.Milliseconds(all.placed)), append(first, measure.Milliseconds(all.first))
		next = append(next, measure.Milliseconds(then.first))
		last = all
	}
	f := figure{
		Program: r.name, Way: r.way.name, Mechanisms: last.mechanisms(),
		Placed: median(placed), First: median(first), FirstMost: present.Figure(measure.Quantile(first, 1)), Next: median(next),
	}
	d.Figures = append(d.Figures, f)
	d.Goals = append(d.Goals, present.Goal{Name: f.Program + ", " + f.Way, Value: f.First, Unit: "ms", Limit: r.limit})
	return nil
}

func median(values []float64) present.Figure { return present.Figure(measure.Median(values)) }

// once puts a hundred points into the program, gives them up, and asks for one
// more at once.
func (r row) once(ctx context.Context) (all, next seen, err error) {
	n, err := newNode(ctx, r.way.inside)
	if err != nil {
		return all, next, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	p, err := r.start(ctx, n)
	if err != nil {
		return all, next, err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	points, err := specs(r.object, r.functions)
	if err != nil {
		return all, next, err
	}
	pid, since := p.cmd.Process.Pid, time.Now()
	if r.way.late {
		a, err := n.joined.Controller.Attach(ctx, pid)
		if err != nil {
			return all, next, err
		}
		defer a.Leave(context.WithoutCancel(ctx))
		if a.NotInjected != nil {
			return all, next, a.NotInjected
		}
		if err := n.knows(ctx, pid); err != nil {
			return all, next, err
		}
	}
	if all, err = n.watch(ctx, pid, points[:hundred], since); err != nil {
		return all, next, err
	}
	next, err = n.watch(ctx, pid, points[hundred:], time.Now())
	return all, next, err
}

// Print shows the figures and the goals.
func (d *document) Print() {
	fmt.Println()
	var table present.Table
	table.Row("100 points in", "", "by", "ms placed", "first event", "most", "next point")
	number := func(f present.Figure) string { return present.Number(float64(f)) }
	for _, f := range d.Figures {
		table.Row(f.Program, f.Way, f.Mechanisms, number(f.Placed), number(f.First), number(f.FirstMost), number(f.Next))
	}
	table.Print(os.Stdout)
	fmt.Println("\nfirst event: until the first one of the last point has come to whoever asked")
	fmt.Println("next point: the same of one that is asked for when the hundred are given up")
}

// programName is how an executable is named in points.
func programName(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return filepath.Base(path)
}
