// SPDX-License-Identifier: Apache-2.0

// Command demo shows Attune on unmodified programs of the distribution: each
// runs as it is, and then under `attune run`. A program that is not installed
// is named and left out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/bench/internal/catalogue"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// shown is one program's part of the table.
type shown struct {
	storm catalogue.Program
	plain float64
	tuned float64
	run   tuned.Run
}

func main() { os.Exit(run()) }

func run() int {
	seconds := flag.Float64("seconds", 10, "length of each run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := demonstrate(ctx, *seconds); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}

// errNothing is returned when no program could be shown.
var errNothing = errors.New("nothing to show: neither numpy nor LAMMPS is installed")

func demonstrate(ctx context.Context, seconds float64) error {
	scratch, err := os.MkdirTemp("", "attune-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	attune := tuned.Attune{Binary: "bin/attune", Scratch: scratch}
	present.ThisMachine("python3-numpy", "lammps", "openmpi-bin").Print(os.Stdout)

	var rows []shown
	for _, name := range []string{"malloc/numpy", "mpi-progress/LAMMPS"} {
		storm, missing := catalogue.Named(name).Prepare(ctx, workload.Repository)
		if missing != "" {
			fmt.Printf("\n%s is left out: %s\n", name, missing)
			continue
		}
		row, err := show(ctx, attune, storm, seconds)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return errNothing
	}
	printTable(rows)
	return nil
}

// show runs one program twice, with the command lines as a person would type
// them.
func show(ctx context.Context, attune tuned.Attune, storm catalogue.Program, seconds float64) (shown, error) {
	command := storm.Default(seconds)
	typed := strings.Join(command, " ")
	row := shown{storm: storm}

	fmt.Printf("\n$ %s\n", typed)
	plain, err := measure.Run(ctx, command)
	if err != nil {
		return row, err
	}
	if row.plain, err = storm.Format.Rate(plain); err != nil {
		return row, err
	}
	fmt.Printf("  %s %s\n", present.Number(row.plain), storm.Unit)

	fmt.Printf("$ attune run -- %s\n", typed)
	if row.run, err = attune.Run(ctx, command); err != nil {
		return row, err
	}
	if row.tuned, err = storm.Format.Rate(row.run.Result); err != nil {
		return row, err
	}
	fmt.Printf("  %s %s\n", present.Number(row.tuned), storm.Unit)
	return row, row.run.Report.WriteText(os.Stdout, report.TextOptions{Width: 100})
}

func printTable(rows []shown) {
	fmt.Println()
	var table present.Table
	table.Row("program", "unit", "default", "attune run", "gain", "changed after", "what", "verdict")
	for _, r := range rows {
		changes := tuned.Changes(r.run.Report)
		after := math.NaN()
		if at, ok := tuned.FirstKept(changes); ok {
			after = at.Sub(r.storm.Format.Beginning(r.run.Result)).Seconds()
		}
		what, verdict := summary(changes)
		table.Row(r.storm.Name, r.storm.Unit, present.Number(r.plain), present.Number(r.tuned),
			present.Times(r.tuned/r.plain), present.Number(after)+" s", what, verdict)
	}
	table.Print(os.Stdout)
}

// summary names the knobs that were changed, without the words that they have
// in common, and the verdicts.
func summary(changes []tuned.Change) (what, verdict string) {
	if len(changes) == 0 {
		return "nothing", "-"
	}
	var knobs, verdicts []string
	for _, c := range changes {
		knob := c.Knob[strings.LastIndexAny(c.Knob, ".:/")+1:]
		if !slices.Contains(knobs, knob) {
			knobs = append(knobs, knob)
		}
		if !slices.Contains(verdicts, c.Verdict) {
			verdicts = append(verdicts, c.Verdict)
		}
	}
	return strings.Join(knobs, ", "), strings.Join(verdicts, ", ")
}
