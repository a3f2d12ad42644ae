// SPDX-License-Identifier: Apache-2.0

// Command dmlib prints what the preloaded library costs per operation, as
// dmlib's own benchmark measures it, beside what was promised.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

// figure is one line of dmlib's benchmark.
type figure struct {
	Operation string  `json:"operation"`
	Mode      string  `json:"mode"`
	Nanos     float64 `json:"ns"`
	Ratio     float64 `json:"ratio"`
	LostShare float64 `json:"lost_share"`
}

// document is what -json writes.
type document struct {
	benchmark.Common
	Figures []figure `json:"figures"`
}

func main() {
	rounds := flag.Int("n", 7, "rounds of each mode; medians are shown")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "dmlib", Packages: []string{"libc6"}, Document: d,
		Measure: func(ctx context.Context) error { return d.measure(ctx, *rounds) },
	}))
}

func (d *document) measure(ctx context.Context, rounds int) error {
	result, err := measure.Run(ctx, []string{"make", "-s", "-C", "dmlib", "bench", fmt.Sprintf("ROUNDS=%d", rounds)})
	if err != nil {
		return err
	}
	for _, line := range result.Lines {
		var f figure
		if err := json.Unmarshal([]byte(line.Text), &f); err != nil {
			return fmt.Errorf("decode %q: %w", line.Text, err)
		}
		d.Figures = append(d.Figures, f)
	}
	d.Goals = d.goals()
	return nil
}

// mostLost is what share of the records may be lost where the cost of recording is judged:
// a lost one costs less. A reader that looks every millisecond, as this one, lost none to 2 %
// of a ring of a quarter of the size at full speed.
const mostLost = 0.02

// promise is how long an operation may take in a mode, as a multiple of its time without
// Attune.
type promise struct {
	operation, mode string
	most            present.Figure
	recorded        bool // of every event, of which few may be lost
}

// promises are what was promised: a hook that nobody asked for costs next to nothing, and one
// of mutexes nothing; records of every event, each with its time, are promised for mutexes.
func promises() []promise {
	return []promise{
		{"lock+unlock", "idle", 1.03, false}, // what noise may make of nothing
		{"malloc+free", "idle", 1.15, false},
		{"read", "idle", 1.1, false},
		{"lock+unlock", "tracing", 3.5, true},
	}
}

// goals has what was measured beside what was promised.
func (d *document) goals() (goals []present.Goal) {
	without := 0
	for _, p := range promises() {
		at := slices.IndexFunc(d.Figures, func(f figure) bool { return f.Operation == p.operation && f.Mode == p.mode })
		if at < 0 {
			without++
			continue
		}
		f, name := d.Figures[at], p.operation+", "+p.mode
		goals = append(goals, present.Goal{Name: name + " / without", Value: present.Figure(f.Ratio), Limit: p.most})
		if p.recorded {
			goals = append(goals, present.Goal{Name: name + ": share of the records lost", Value: present.Figure(f.LostShare), Limit: mostLost})
		}
	}
	return append(goals, present.Goal{Name: "promises without a figure", Value: present.Figure(without)})
}

// Print shows the figures and the goals.
func (d *document) Print() {
	fmt.Println()
	var table present.Table
	table.Row("operation", "mode", "ns", "ratio", "events lost")
	for _, f := range d.Figures {
		table.Row(f.Operation, f.Mode, present.Number(f.Nanos), fmt.Sprintf("%.3f", f.Ratio), fmt.Sprintf("%.1f %%", 100*f.LostShare))
	}
	table.Print(os.Stdout)
}
