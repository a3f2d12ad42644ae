// SPDX-License-Identifier: Apache-2.0

// Package benchmark is what the commands of bench/cmd have in common from their
// flags to their exit code.
package benchmark

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/attune-hpc/attune/bench/internal/present"
)

// Document is what a benchmark has measured. It is encoded as JSON for -json.
type Document interface {
	// Print shows the figures on standard output, and sets the goals.
	Print()
	// Judged returns the goals; it may be asked after Print.
	Judged() []present.Goal
}

// Judgement is the part of a Document that has the goals.
type Judgement struct {
	Goals []present.Goal `json:"goals"`
}

// Judged implements Document.
func (j *Judgement) Judged() []present.Goal { return j.Goals }

// Options say what a benchmark is.
type Options struct {
	// Name is that of the command.
	Name string
	// Machine describes where it runs.
	Machine present.Machine
	// Quick is the short form, what -quick gives to flags that are not given:
	// fewer runs of the same kind, compared in the same pairs.
	Quick Quick
	// Document takes the figures.
	Document Document
	// Measure fills it in. Its context ends at SIGINT and SIGTERM.
	Measure func(context.Context) error
}

// Main runs a benchmark and returns its exit code, which is 1 after an error,
// and with -check after a missed goal. It parses the flags, to which it adds
// -json, -check and -quick. Errors are shown under the benchmark's name.
func Main(o Options) int {
	file := flag.String("json", "", "also write the figures to this file")
	check := flag.Bool("check", false, "fail if a goal is missed")
	quick := flag.Bool("quick", false, "a few minutes at most: as if with "+o.Quick.String())
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, *quick, *check, *file); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", o.Name, err)
		return 1
	}
	return 0
}

func run(ctx context.Context, o Options, quick, check bool, file string) error {
	if quick {
		if err := o.Quick.apply(flag.CommandLine); err != nil {
			return err
		}
	}
	o.Machine.Print(os.Stdout)
	if err := o.Measure(ctx); err != nil {
		return err
	}
	o.Document.Print()
	goals := o.Document.Judged()
	printGoals(os.Stdout, goals)
	err := present.WriteJSON(file, o.Document)
	if check {
		err = errors.Join(err, verdict(goals))
	}
	return err
}

func printGoals(to io.Writer, goals []present.Goal) {
	if len(goals) > 0 {
		fmt.Fprintln(to)
		present.PrintGoals(to, goals)
	}
}

// verdict returns an error that names the goals that are missed, and by how
// much; nil if all are met. A benchmark that judged nothing proves nothing.
func verdict(goals []present.Goal) error {
	if len(goals) == 0 {
		return errors.New("no goal was checked")
	}
	var missed []error
	for _, g := range goals {
		if !g.Met() {
			missed = append(missed, fmt.Errorf("  %s: %s", g.Name, g.Shortfall()))
		}
	}
	if len(missed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d goals missed:\n%w", len(missed), len(goals), errors.Join(missed...))
}
