// SPDX-License-Identifier: Apache-2.0

// Command probe prints what watching the calls of a function costs per call, by
// what is done at each and by the mechanism: entry patch, GOT stub, uprobe.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/workload"
	"github.com/attune-hpc/attune/controller/bpf"
)

// document is what -json writes.
type document struct {
	benchmark.Common
	Figures []figure `json:"figures"`
	Floors  []floor  `json:"floors"`
	// NotMeasured is why there are no Floors, though they were to be.
	NotMeasured string `json:"floors_not_measured,omitempty"`
}

// programs under test.
var programs = workload.Repository

func main() {
	repeats := flag.Int("n", 7, "runs with and without; medians are shown")
	alone := flag.Bool("uprobes", false, "measure only what uprobes cost by themselves")
	inside := flag.Bool("inside", false, "leave out what uprobes cost by themselves")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "probe", Packages: []string{"libc6"}, Quick: benchmark.Quick{"n": "5"}, Document: d,
		Measure: func(ctx context.Context) error {
			if *alone {
				return d.measureFloors(ctx, *repeats)
			}
			return d.measure(ctx, *repeats, !*inside)
		},
	}))
}

// measure compares the rows, and uprobes by themselves.
func (d *document) measure(ctx context.Context, repeats int, floors bool) error {
	program, err := programs.ProbedCalls(ctx, "")
	if err != nil {
		return err
	}
	if err := d.measureRows(ctx, repeats, program); err != nil || !floors {
		return err
	}
	return d.measureFloors(ctx, repeats)
}

// measureFloors measures uprobes by themselves where this user may; it is a goal that they
// were measured.
func (d *document) measureFloors(ctx context.Context, repeats int) error {
	floors, err := measureFloor(ctx, programs, repeats)
	missing := present.Goal{Name: "uprobes that cannot be measured here"}
	if errors.Is(err, bpf.ErrUnsupported) {
		d.NotMeasured, missing.Value, err = err.Error(), 1, nil
	}
	d.Floors, d.Goals = floors, append(append(d.Goals, missing), floorGoals(floors)...)
	return err
}

// Print shows the figures and the goals.
func (d *document) Print() {
	fmt.Println()
	var table present.Table
	table.Row("at each call", "function", "mechanism", "ns", "watched", "added", "by hand")
	for _, f := range d.Figures {
		byHand := ""
		if f.byHand != nil {
			byHand = present.Number(float64(f.ByHand))
		}
		table.Row(f.Does, f.Function, f.Mechanism, present.Number(float64(f.Plain)), present.Number(float64(f.Watched)), present.Number(float64(f.Added)), byHand)
	}
	table.Print(os.Stdout)
	fmt.Println()
	printFloors(os.Stdout, d.Floors)
	if d.NotMeasured != "" {
		fmt.Println("uprobes are not measured:", d.NotMeasured)
	}
}
