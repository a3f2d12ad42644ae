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
	result, err := measure.Run(ctx, []string{"make", "-s", "-C", "dmlib", "bench", fmt.Sprintf("ARGS=--json --rounds %d", rounds)})
	if err != nil {
		return err
	}
	for _, line := range result.Lines {
		var f figure
		if err := json.Unmarshal([]byte(line.Text), &f); err != nil {
			return fmt.Errorf("decode %q: %w", line.Text, err)
		}
		d.Figures = append(d.Figures, f)
		d.Goals = append(d.Goals, f.goals()...)
	}
	return nil
}

// goals says what was promised: a hook that nobody asked for costs next to
// nothing, and one of mutexes nothing; records of every event, with the clock read once per pair
// or for each, are promised for mutexes.
func (f figure) goals() []present.Goal {
	goal := present.Goal{Name: f.Operation + ", " + f.Mode + " / without", Value: present.Figure(f.Ratio)}
	switch {
	case f.Mode == "idle" && f.Operation == "lock+unlock": // what noise may make of nothing
		goal.Limit = 1.03
	case f.Mode == "idle" && f.Operation == "malloc+free":
		goal.Limit = 1.15
	case f.Mode == "idle":
		goal.Limit = 1.1
	case f.Mode == "tracing" && f.Operation == "lock+unlock":
		goal.Limit = 2.0
	case f.Mode == "tracing_timed" && f.Operation == "lock+unlock":
		goal.Limit = 3.5
	default:
		return nil
	}
	return []present.Goal{goal}
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
