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

// mostLost is what share of the records may be lost where the cost of recording is judged:
// a lost one costs less. A reader that looks every millisecond, as this one, lost none to 2 %
// of a ring of a quarter of the size at full speed.
const mostLost = 0.02

// goals says what was promised: a hook that nobody asked for costs next to
// nothing, and one of mutexes nothing; records of every event, with the clock read once per pair
// or for each, are promised for mutexes.
func (f figure) goals() []present.Goal {
	name := f.Operation + ", " + f.Mode
	goal := present.Goal{Name: name + " / without", Value: present.Figure(f.Ratio)}
	kept := present.Goal{Name: name + ": share of the records lost", Value: present.Figure(f.LostShare), Limit: mostLost}
	switch {
	case f.Mode == "idle" && f.Operation == "lock+unlock": // what noise may make of nothing
		goal.Limit = 1.03
	case f.Mode == "idle" && f.Operation == "malloc+free":
		goal.Limit = 1.15
	case f.Mode == "idle":
		goal.Limit = 1.1
	case f.Mode == "tracing" && f.Operation == "lock+unlock":
		goal.Limit = 2.0
		return []present.Goal{goal, kept}
	case f.Mode == "tracing_timed" && f.Operation == "lock+unlock":
		goal.Limit = 3.5
		return []present.Goal{goal, kept}
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
