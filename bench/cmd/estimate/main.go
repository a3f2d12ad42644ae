// SPDX-License-Identifier: Apache-2.0

// Command estimate replays traces of Nextflow in the order in which the tasks ended, and
// measures what each way of saying how much memory the next task needs would have wasted,
// and how often it would have said too little, with and without the sizes of inputs.
//
// Tasks of the same process are one kind; kinds with few tasks are left out. Where a way
// says nothing, the task gets what was asked for. A try with too little fails, and takes
// as long as the task; the next one gets the most that was seen, and each one after it
// twice as much. Waste is compared with that of cctools' maximum, by the geometric mean
// over the traces. What tasks read stands for the size of their input, as in the
// literature on these traces: it is not known before, so that real sizes do worse or
// better.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/archive/imports"
	"github.com/attune-hpc/attune/internal/estimate"
)

// document is what -json writes.
type document struct {
	benchmark.Common
	Figures []*figure `json:"figures"`
}

// figure is one way over all traces.
type figure struct {
	Way    string `json:"way"`
	Inputs bool   `json:"input_sizes"`
	// Waste is relative to that of the maximum: the geometric mean over the traces.
	Waste present.Figure `json:"waste"`
	// Failed is how many tries failed, as a part of the tasks.
	Failed present.Figure   `json:"failed"`
	GBh    []present.Figure `json:"wasted_gbh"` // by trace
}

func main() {
	least := flag.Int("least", 30, "leave out processes with fewer than `N` tasks")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "estimate", Quick: benchmark.Quick{}, Document: d,
		Measure: func(context.Context) error { return d.measure(flag.Args(), *least) },
	}))
}

func (d *document) measure(paths []string, least int) error {
	if len(paths) == 0 {
		return errors.New("name traces of Nextflow, as files; bench/estimate says which the goals are for")
	}
	var traces [][][]*archive.Task
	for _, path := range paths {
		kinds, err := load(path, least)
		if err != nil {
			return err
		}
		traces = append(traces, kinds)
	}
	for _, inputs := range []bool{true, false} {
		d.replay(traces, inputs)
	}
	return nil
}

// load returns the tasks of a trace by kind, in the order of their ends.
func load(path string, least int) (kinds [][]*archive.Task, err error) {
	text, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	result, err := imports.Read("nextflow", imports.File{Name: filepath.Base(path), Text: bytes.TrimSpace(text), Local: time.UTC})
	if err != nil {
		return nil, err
	}
	by := make(map[string][]*archive.Task)
	for _, t := range result.Tasks {
		peak, known := t.Number("memory.resident_peak_bytes")
		if code := t.Account.Exit.Code; known && peak > 0 && code != nil && *code == 0 {
			by[t.Name] = append(by[t.Name], t)
		}
	}
	for _, tasks := range by {
		if len(tasks) >= least {
			slices.SortStableFunc(tasks, func(a, b *archive.Task) int { return a.Account.End.Compare(b.Account.End) })
			kinds = append(kinds, tasks)
		}
	}
	slices.SortFunc(kinds, func(a, b []*archive.Task) int { return cmp.Compare(a[0].Name, b[0].Name) })
	if len(kinds) == 0 {
		return nil, fmt.Errorf("%s: no process has %d tasks that succeeded", path, least)
	}
	return kinds, nil
}

// read reads a file, which may be compressed by gzip.
func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if filepath.Ext(path) != ".gz" {
		return io.ReadAll(file)
	}
	z, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// way is one way to say what is needed.
type way struct {
	name string
	add  func(estimate.Task)
	say  func(estimate.Next) (float64, bool)
}

// ways are all of them, new for each kind; the first is the one that others are compared
// with.
func ways() (all []way) {
	const step, margin = 250 << 20, 128 << 20
	for _, m := range []estimate.Method{
		estimate.NewMax(step), estimate.NewMinWaste(step), estimate.NewPonder(margin), estimate.NewLine(2 * margin),
		estimate.NewOffset(1), estimate.NewOffset(3),
	} {
		all = append(all, way{m.Name(), m.Add, func(n estimate.Next) (float64, bool) { return m.Estimate(n.Input) }})
	}
	c := estimate.NewBytesChooser()
	return append(all,
		way{"what was asked for", func(estimate.Task) {}, func(estimate.Next) (float64, bool) { return 0, false }},
		way{"cheapest of late", c.Add, func(n estimate.Next) (float64, bool) {
			choice, known := c.Choose(n)
			return choice.Amount, known
		}})
}

// replay adds the figures of all ways.
func (d *document) replay(traces [][][]*archive.Task, inputs bool) {
	var figures []*figure
	for _, w := range ways() {
		figures = append(figures, &figure{Way: w.name, Inputs: inputs})
	}
	tasks, failed, logs := 0, make([]int, len(figures)), make([]float64, len(figures))
	for _, kinds := range traces {
		costs := make([]estimate.Cost, len(figures))
		for _, kind := range kinds {
			replayKind(kind, inputs, costs)
		}
		tasks += costs[0].Tasks
		for i, c := range costs {
			failed[i] += c.Failed
			logs[i] += math.Log(c.Waste / costs[0].Waste)
			figures[i].GBh = append(figures[i].GBh, present.Figure(c.Waste/1e9/3600))
		}
	}
	for i, f := range figures {
		f.Waste = present.Figure(math.Exp(logs[i] / float64(len(traces))))
		f.Failed = present.Figure(float64(failed[i]) / float64(tasks))
	}
	d.Figures = append(d.Figures, figures...)
}

// replayKind adds the costs of the tasks of one kind.
func replayKind(kind []*archive.Task, inputs bool, costs []estimate.Cost) {
	all, most := ways(), 0.0
	for _, t := range kind {
		peak, _ := t.Number("memory.resident_peak_bytes")
		task := estimate.Task{Peak: peak, Seconds: t.Account.WallSeconds, Asked: float64(t.Asked.MemoryBytes)}
		if inputs {
			task.Input, _ = t.Number("io.read_bytes")
		}
		for i, w := range all {
			amount, known := w.say(estimate.Next{Input: task.Input, Asked: task.Asked})
			if !known {
				amount = task.Asked
			}
			costs[i].Run(task, amount, most)
			w.add(task)
		}
		most = max(most, peak)
	}
}

// Print implements benchmark.Document.
func (d *document) Print() {
	for _, inputs := range []bool{true, false} {
		title := "with input sizes"
		if !inputs {
			title = "without input sizes"
		}
		var t present.Table
		t.Row(title, "waste, of the maximum's", "failed tries", "GBh by trace")
		for _, f := range d.Figures {
			if f.Inputs != inputs {
				continue
			}
			var by []string
			for _, v := range f.GBh {
				by = append(by, present.Number(float64(v)))
			}
			t.Row(f.Way, fmt.Sprintf("%.3f", f.Waste), fmt.Sprintf("%.2f %%", 100*f.Failed), strings.Join(by, " "))
		}
		t.Print(os.Stdout)
		fmt.Println()
	}
	for _, f := range d.Figures {
		if f.Way != "cheapest of late" {
			continue
		}
		waste, failed, with := present.Figure(0.66), present.Figure(1.2), "with"
		if !f.Inputs {
			waste, failed, with = 0.75, 1.8, "without"
		}
		d.Goals = append(d.Goals,
			present.Goal{Name: "waste " + with + " input sizes", Value: f.Waste, Limit: waste},
			present.Goal{Name: "failed tries " + with + " input sizes", Value: 100 * f.Failed, Unit: "%", Limit: failed})
	}
}
