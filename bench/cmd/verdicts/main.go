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
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// patience is how much longer than it was told to a program may run.
const patience = 2 * time.Minute

// options are the command's flags.
type options struct {
	repeats int
	seconds float64
	plain   float64
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
	// Failed are runs that did not get through, with the reason.
	Failed []string `json:"failed,omitempty"`

	prepared catalogue.Program
	times    float64
}

func main() {
	var o options
	flag.IntVar(&o.repeats, "n", 20, "runs of each program")
	flag.Float64Var(&o.seconds, "seconds", 12, "length of a run under attune")
	flag.Float64Var(&o.plain, "plain-seconds", 3, "length of the run without attune before it")
	flag.StringVar(&o.only, "run", "", "only programs whose names match this `REGEXP`")
	flag.StringVar(&o.reports, "reports", "", "keep reports, timelines and what the programs printed in this `FOLDER`")
	flag.BoolVar(&o.list, "list", false, "name the programs, and run none")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "verdicts", Packages: []string{"libc6", "python3-numpy", "openmpi-bin"}, Document: d,
		Quick:   benchmark.Quick{"n": "3"},
		Measure: func(ctx context.Context) error { return d.measure(ctx, o) },
	}))
}

// measure runs all programs in turn, so that whatever the machine does hits them alike.
func (d *document) measure(ctx context.Context, o options) error {
	if err := d.prepare(ctx, o); err != nil || o.list {
		return err
	}
	a := tuned.Attune{Binary: "bin/attune", Scratch: d.Scratch, Flags: []string{"--timeline", timelineFile(d.Scratch)}}
	for turn := range o.repeats {
		for i := range d.Programs {
			p := &d.Programs[i]
			fmt.Fprintf(os.Stderr, "%s: run %d of %d\n", p.Name, turn+1, o.repeats)
			p.Runs++
			if err := p.run(ctx, a, o); ctx.Err() != nil {
				return context.Cause(ctx)
			} else if err != nil { // the others can be measured all the same
				p.Failed = append(p.Failed, fmt.Sprintf("run %d: %v", p.Runs, err))
			}
		}
	}
	d.Goals = d.goals()
	return nil
}

// prepare finds out which programs can run here, or lists them.
func (d *document) prepare(ctx context.Context, o options) error {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	for _, c := range subjects(d.Scratch) {
		if !pattern.MatchString(c.Name) {
			continue
		}
		if o.list {
			fmt.Println(c.Name)
		} else if p, missing := c.Prepare(ctx, workload.Repository); missing != "" {
			d.Missing = append(d.Missing, c.Name+": "+missing)
		} else {
			d.Programs = append(d.Programs, program{Name: c.Name, prepared: p, times: c.times})
		}
	}
	return writeTunlets(d.Scratch)
}

// run runs a program once, and adds what was said of the changes that were tried.
func (p *program) run(ctx context.Context, a tuned.Attune, o options) error {
	seconds := p.times * o.seconds
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration((seconds+o.plain)*float64(time.Second)))
	defer cancel()
	plain, err := measure.Run(ctx, p.prepared.Default(o.plain))
	if err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	a.Flags = append(a.Flags, p.prepared.Flags...)
	run, err := a.Run(ctx, p.prepared.Default(seconds))
	if err != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	timeline, err := readTimeline(timelineFile(a.Scratch))
	if err != nil {
		return err
	}
	format := p.prepared.Format
	seen := observed{report: run.Report, timeline: timeline, progress: working(format.Progress(run.Result)), plain: working(format.Progress(plain))}
	p.Verdicts = append(p.Verdicts, seen.verdicts(p.Runs)...)
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
