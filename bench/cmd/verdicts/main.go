// SPDX-License-Identifier: Apache-2.0

// Command verdicts judges what Attune says of its changes by what the programs say
// themselves: in each run it compares how fast the program's own counter rose with a
// change and without it to the verdict on the change, and to the gain that was stated.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/catalogue"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// longest is how long a run may take: a program that hangs holds up nobody else.
const longest = 2 * time.Minute

// options are the command's flags.
type options struct {
	repeats int
	seconds float64
	only    string
	list    bool
	reports string
}

// document is what -json writes.
type document struct {
	benchmark.Common
	Programs []program `json:"programs"`
	// Missing are programs that cannot run here, with the reason.
	Missing []string `json:"missing,omitempty"`
}

// program is a program and what was said of it, a verdict for each change that was tried.
type program struct {
	Name     string    `json:"name"`
	Runs     int       `json:"runs"`
	Verdicts []verdict `json:"verdicts"`

	prepared catalogue.Program
}

func main() {
	var o options
	flag.IntVar(&o.repeats, "n", 20, "runs of each program")
	flag.Float64Var(&o.seconds, "seconds", 20, "length of a run")
	flag.StringVar(&o.only, "run", "", "only programs whose names match this `REGEXP`")
	flag.StringVar(&o.reports, "reports", "", "keep reports, timelines and what the programs printed in this `FOLDER`")
	flag.BoolVar(&o.list, "list", false, "name the programs, and run none")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "verdicts", Packages: []string{"libc6", "python3-numpy", "lammps", "openmpi-bin"}, Document: d,
		Quick:   benchmark.Quick{"n": "3"},
		Measure: func(ctx context.Context) error { return d.measure(ctx, o) },
	}))
}

// measure runs all programs in turn, so that whatever the machine does hits them alike.
func (d *document) measure(ctx context.Context, o options) error {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	if err := writeTunlets(d.Scratch); err != nil {
		return err
	}
	a := tuned.Attune{Binary: "bin/attune", Scratch: d.Scratch, Flags: []string{"--timeline", timelineFile(d.Scratch)}}
	for _, c := range subjects(d.Scratch) {
		if !pattern.MatchString(c.Name) {
			continue
		}
		if o.list {
			fmt.Println(c.Name)
			continue
		}
		if p, missing := c.Prepare(ctx, workload.Repository); missing != "" {
			d.Missing = append(d.Missing, c.Name+": "+missing)
		} else {
			d.Programs = append(d.Programs, program{Name: c.Name, prepared: p})
		}
	}
	if o.list {
		return nil
	}
	for turn := range o.repeats {
		for i := range d.Programs {
			fmt.Fprintf(os.Stderr, "%s: run %d of %d\n", d.Programs[i].Name, turn+1, o.repeats)
			if err := d.Programs[i].run(ctx, a, o); err != nil {
				return fmt.Errorf("%s: %w", d.Programs[i].Name, err)
			}
		}
	}
	d.Goals = d.goals()
	return nil
}

// run runs a program once, and adds what was said of the changes that were tried.
func (p *program) run(ctx context.Context, a tuned.Attune, o options) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	a.Flags = append(a.Flags, p.prepared.Flags...)
	run, err := a.Run(ctx, p.prepared.Default(o.seconds))
	if err != nil {
		return err
	}
	p.Runs++
	entries, err := readTimeline(timelineFile(a.Scratch))
	if err != nil {
		return err
	}
	p.Verdicts = append(p.Verdicts, verdicts(p.Runs, run.Report, entries, p.prepared.Format.Progress(run.Result))...)
	return p.keep(a, o.reports, run)
}

// keep copies what a run left to where the user wants it.
func (p *program) keep(a tuned.Attune, folder string, run tuned.Run) error {
	if folder == "" {
		return nil
	}
	name := filepath.Join(folder, fmt.Sprintf("%s-%d", strings.NewReplacer("/", "-", " ", "-", ",", "").Replace(p.Name), p.Runs))
	var output strings.Builder
	for _, line := range run.Lines {
		fmt.Fprintf(&output, "%s %s\n", line.At.Format(time.RFC3339Nano), line.Text)
	}
	return errors.Join(os.MkdirAll(folder, 0o755), copyFile(a.ReportFile(), name+".json"),
		copyFile(timelineFile(a.Scratch), name+".jsonl"), os.WriteFile(name+".out", []byte(output.String()), 0o644))
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

func timelineFile(scratch string) string { return filepath.Join(scratch, "timeline.jsonl") }
