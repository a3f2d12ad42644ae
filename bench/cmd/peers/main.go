// SPDX-License-Identifier: Apache-2.0

// Command peers prints what watching a function costs per call, with Attune and
// with the tools that do the same.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/counter"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// figure is what one tool adds to a call of one function.
type figure struct {
	Does       string `json:"does"`
	Tool       string `json:"tool"`
	Mechanism  string `json:"mechanism,omitempty"`
	Function   string `json:"function"`
	Unmodified bool   `json:"unmodified_program"`
	// Added is the median, Missing why there is none.
	Added   present.Figure `json:"added_ns"`
	Missing string         `json:"missing,omitempty"`

	attune bool
	added  []float64 // of each turn; NaN: it has failed
}

// document is what -json writes.
type document struct {
	benchmark.Common
	Figures []figure `json:"figures"`
}

func main() {
	repeats := flag.Int("n", 5, "runs of each tool; medians are shown")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "peers", Packages: []string{"libc6", "bpftrace", "linux-perf", "lttng-tools", "uftrace", "ltrace"}, Document: d,
		Measure: func(ctx context.Context) error { return d.measure(ctx, *repeats) },
	}))
}

// measure runs Attune's points and every tool in turns, each beside the plain
// program: what a machine does meanwhile is done to all.
func (d *document) measure(ctx context.Context, repeats int) error {
	b := bench{programs: workload.Repository, scratch: d.Scratch}
	var turns []turn
	for i, o := range attunes {
		once, err := b.attune(ctx, o, filepath.Join(d.Scratch, fmt.Sprint(i)))
		if err != nil {
			return fmt.Errorf("attune, %s: %w", o.point, err)
		}
		turns = append(turns, turn{figure{Does: o.does, Tool: "Attune", Function: o.at, Unmodified: true, attune: true}, once})
	}
	for _, t := range peers {
		turns = append(turns, turn{figure{Does: t.does, Tool: t.name, Function: t.at, Unmodified: t.variant == plain}, b.peer(t)})
	}
	for range repeats {
		for i := range turns {
			if err := turns[i].take(ctx); err != nil {
				return err
			}
		}
	}
	for _, t := range turns {
		d.Figures = append(d.Figures, t.result())
	}
	d.judge()
	return nil
}

// bench is what all measurements share.
type bench struct {
	programs workload.Catalogue
	scratch  string
}

// attune prepares a measure point, with a folder of its own.
func (b bench) attune(ctx context.Context, o ours, dir string) (func(context.Context, *figure) (float64, error), error) {
	program, err := b.programs.ProbedCalls(ctx, "")
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	attune, err := counter.Attune(ctx, dir, strings.Replace(o.point, "*", filepath.Base(program), 1))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, f *figure) (float64, error) {
		without, err := measure.Run(ctx, []string{program})
		if err != nil {
			return 0, err
		}
		r, err := attune.Run(ctx, []string{program})
		if err != nil {
			return 0, err
		}
		by, err := mechanism(r, o.at)
		if err != nil {
			return 0, err
		}
		f.Mechanism = by
		return nanos(r.Result, o.at) - nanos(without, o.at), nil
	}, nil
}

// mechanism returns by what a point was served, if it was.
func mechanism(r tuned.Run, function string) (string, error) {
	if len(r.Report.Points) == 0 {
		return "", fmt.Errorf("%s: nothing was asked for", function)
	}
	p := r.Report.Points[0]
	if p.State == "placed" && p.Hits > 0 {
		return p.Mechanism, nil
	}
	return "", fmt.Errorf("%s %s: %s", p.State, function, cmp.Or(p.Reason, "no hits"))
}

// peer measures with a tool of others.
func (b bench) peer(t tool) func(context.Context, *figure) (float64, error) {
	return func(ctx context.Context, _ *figure) (float64, error) {
		if _, err := exec.LookPath(t.command); err != nil {
			return 0, fmt.Errorf("%s is not installed (apt-get install %s)", t.command, t.pkg)
		}
		program, err := b.programs.ProbedCalls(ctx, t.variant)
		if err != nil {
			return 0, err
		}
		base, err := b.programs.ProbedCalls(ctx, "")
		if err != nil {
			return 0, err
		}
		calls := strconv.Itoa(t.calls)
		without, err := measure.Run(ctx, []string{base, calls})
		if err != nil {
			return 0, err
		}
		with, err := b.under(ctx, t, program, calls)
		if err != nil {
			return 0, err
		}
		added := nanos(with, t.at) - nanos(without, t.at)
		if math.IsNaN(added) || added <= 0 { // anything is cheaper than what did not watch
			return 0, fmt.Errorf("%s adds %s ns to a call of %s", t.name, present.Number(added), t.at)
		}
		return added, nil
	}
}

// under runs a program under a tool, in a folder that is gone afterwards.
func (b bench) under(ctx context.Context, t tool, program, calls string) (measure.Result, error) {
	dir, err := os.MkdirTemp(b.scratch, "peer-")
	if err != nil {
		return measure.Result{}, err
	}
	defer os.RemoveAll(dir)
	program, err = filepath.Abs(program)
	if err != nil {
		return measure.Result{}, err
	}
	return measure.Run(ctx, []string{"sh", "-c", "cd " + dir + "; " + t.script, "sh", program, calls})
}

// nanos returns what a call of a function took, as the program says.
func nanos(r measure.Result, function string) float64 {
	for _, line := range r.Lines {
		var name string
		var value float64
		if n, _ := fmt.Sscan(line.Text, &name, &value); n == 2 && name == function {
			return value
		}
	}
	return measure.Median(nil) // not told
}

// judge sets Attune's figure beside that of each tool that offers the same: the
// cheapest that Attune has for a function of this kind, against the tool's of the
// same turn; the median of all. What was not measured is not cheaper.
func (d *document) judge() {
	missing := 0
	for _, f := range d.Figures {
		if f.Missing != "" {
			missing++
			continue
		}
		at := slices.IndexFunc(d.Figures, func(o figure) bool { return o.attune && o.Does == f.Does && o.Function == f.Function })
		if f.attune || at < 0 {
			continue
		}
		d.Goals = append(d.Goals, present.Goal{
			Name:  fmt.Sprintf("%s: Attune (%s) to %s", f.Does, d.Figures[at].Mechanism, f.Tool),
			Value: present.Figure(measure.Median(measure.Ratios(d.Figures[at].added, f.added))), Limit: 1,
		})
	}
	d.Goals = append(d.Goals, present.Goal{Name: "tools that cannot run here, or have failed", Value: present.Figure(missing), Limit: 0})
}

// Print shows the figures and the goals.
func (d *document) Print() {
	fmt.Println()
	var table present.Table
	table.Row("at each call", "tool", "function", "program", "ns added")
	slices.SortStableFunc(d.Figures, func(a, b figure) int { return cmp.Compare(a.Does, b.Does) })
	for _, f := range d.Figures {
		name, program, added := f.Tool, "as it is", present.Number(float64(f.Added))
		if f.Mechanism != "" {
			name += ", " + f.Mechanism
		}
		if !f.Unmodified {
			program = "compiled for it"
		}
		if f.Missing != "" {
			added = "-"
		}
		table.Row(f.Does, name, f.Function, program, added)
	}
	table.Print(os.Stdout)
	for _, f := range d.Figures {
		if f.Missing != "" {
			fmt.Printf("%s, %s: %s\n", f.Tool, f.Does, f.Missing)
		}
	}
}
