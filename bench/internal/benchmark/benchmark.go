// SPDX-License-Identifier: Apache-2.0

// Package benchmark is what the commands of bench/cmd have in common from their
// flags to their exit code.
package benchmark

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/attune-hpc/attune/bench/internal/present"
)

// Document is what a benchmark has measured. It embeds [Common], and is encoded as
// JSON for -json.
type Document interface {
	// Print shows the figures on standard output, and sets the goals.
	Print()
	common() *Common
}

// Common is what the documents of all benchmarks have.
type Common struct {
	Goals []present.Goal `json:"goals"`
	// Machine is where it was measured; Main sets it.
	Machine present.Machine `json:"machine"`
	// Scratch is an empty folder, there while Options.Measure runs. Its path is
	// short, as those of sockets have to be.
	Scratch string `json:"-"`
}

func (c *Common) common() *Common { return c }

// Options say what a benchmark is.
type Options struct {
	// Name is that of the command.
	Name string
	// Packages are the Debian packages whose versions say more of the machine.
	Packages []string
	// Quick is the short form, what -quick gives to flags that are not given:
	// fewer runs of the same kind, compared in the same pairs. A median that is judged is that
	// of five at least.
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
	quick := flag.Bool("quick", false, "fewer or shorter runs, compared in the same pairs: as if with "+o.Quick.String())
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
	c := o.Document.common()
	c.Machine = present.ThisMachine(o.Packages...)
	c.Machine.Print(os.Stdout)
	var err error
	if c.Scratch, err = os.MkdirTemp("", "ab-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.Scratch)
	if err := o.Measure(ctx); err != nil {
		return err
	}
	o.Document.Print()
	printGoals(os.Stdout, c.Goals)
	err = writeJSON(file, o.Document)
	if check {
		err = errors.Join(err, verdict(c.Goals))
	}
	return err
}

// writeJSON writes what was measured into a file, indented. An empty path
// writes nothing.
func writeJSON(path string, document any) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
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

// Quick has values of flags by their names; empty where the usual form is short.
type Quick map[string]string

// String returns the flags as one would type them.
func (q Quick) String() string {
	if len(q) == 0 {
		return "no other flag"
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(q)) {
		words = append(words, fmt.Sprintf("-%s %s", name, q[name]))
	}
	return strings.Join(words, " ")
}

// apply sets the flags that the user has not given.
func (q Quick) apply(flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range q {
		if given[name] {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("-quick: -%s %s: %w", name, value, err)
		}
	}
	return nil
}
