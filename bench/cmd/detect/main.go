// SPDX-License-Identifier: Apache-2.0

// Command detect measures how soon a process that a registration means is found
// and instrumented by a node's service, how many short-lived ones are missed,
// and what the service costs a node that runs other things.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

// document is what -json writes.
type document struct {
	benchmark.Common
	Starts  starts  `json:"starts"`
	Short   short   `json:"short_processes"`
	Service service `json:"service"`
	// Costs of sessions, by how they are served.
	Costs []cost `json:"costs"`
}

func main() {
	runs := flag.Int("n", 100, "processes that are timed")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "detect", Packages: []string{"libc6"}, Document: d,
		Measure: func(ctx context.Context) error { return d.measure(ctx, *runs) },
	}))
}

func (d *document) measure(ctx context.Context, runs int) (err error) {
	if os.Getuid() != 0 {
		return fmt.Errorf("a node's service is root's: run it as root")
	}
	p, err := compile(ctx, d.Scratch)
	if err != nil {
		return err
	}
	if d.Starts, _, err = timeStarts(ctx, d.Scratch, false, p, runs); err != nil {
		return fmt.Errorf("starts: %w", err)
	}
	if d.Costs, err = compare(ctx, d.Scratch, p); err != nil {
		return fmt.Errorf("processes of sessions: %w", err)
	}
	if d.Short, err = countShort(ctx, d.Scratch); err != nil {
		return fmt.Errorf("short processes: %w", err)
	}
	if d.Service, err = weighService(ctx, d.Scratch); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	inside, own := d.Costs[0], d.Costs[1]
	d.Goals = []present.Goal{
		{Name: "exec to instrumented, median", Value: quantile(d.Starts.Instrumented, 0.5), Unit: "ms", Limit: 2},
		{Name: "processes instrumented before main", Value: present.Figure(100 * d.Starts.PlacedBefore), Unit: "%", Limit: 100, AtLeast: true},
		{Name: "calls from main on that were counted", Value: present.Figure(100 * d.Starts.Counted), Unit: "%", Limit: 100, AtLeast: true},
		{Name: "exec to known: what the process of the session adds", Value: more(own.Exec, inside.Exec), Unit: "ms", Limit: 0.5},
		{Name: "the same of the first process of a session", Value: more(own.Start, inside.Start), Unit: "ms", Limit: 10},
		{Name: "short processes missed", Value: present.Figure(d.Short.Started - d.Short.Found), Limit: 0},
		{Name: "CPU of the idle service beside 1,000 processes", Value: d.Service.IdlePercent, Unit: "% of a core", Limit: 0.2},
		{Name: "memory of the service, with all of its processes", Value: d.Service.MB, Unit: "MB", Limit: 40},
	}
	return nil
}

func quantile(milliseconds []float64, share float64) present.Figure {
	if share == 0.5 {
		return present.Figure(measure.Median(milliseconds))
	}
	return present.Figure(measure.Quantile(milliseconds, share))
}

// Print shows the figures and the goals.
func (d *document) Print() {
	number := func(f present.Figure) string { return present.Number(float64(f)) }
	var table present.Table
	table.Row("since exec, ms", "median", "p90", "most")
	for _, row := range []struct {
		name   string
		values []float64
	}{{"seen", d.Starts.Seen}, {"instrumented, at most", d.Starts.Instrumented}, {"known to the controller", d.Starts.Known}, {"main begins", d.Starts.Main}} {
		table.Row(row.name, number(quantile(row.values, 0.5)), number(quantile(row.values, 0.9)), number(quantile(row.values, 1)))
	}
	fmt.Println()
	table.Print(os.Stdout)
	var costs present.Table
	costs.Row("a session", "exec to known, ms", "of its first process, ms")
	for _, c := range d.Costs {
		costs.Row(c.Way, number(quantile(c.Exec, 0.5)), number(quantile(c.Start, 0.5)))
	}
	fmt.Println()
	costs.Print(os.Stdout)
	fmt.Printf("\n%.0f %% of the processes were seen before main, %.0f %% instrumented before main: all of their calls were counted\n", 100*d.Starts.SeenBefore, 100*d.Starts.PlacedBefore)
	fmt.Printf("%d short processes: %d found, %d events lost\n", d.Short.Started, d.Short.Found, d.Short.Lost)
	fmt.Printf("the service is %d processes, of %s MB together\n", d.Service.Processes, number(d.Service.MB))
	fmt.Printf("%d forks and execs of others: %s s without the service, %s s beside it, which took %s ms of CPU time\n",
		d.Service.StormProcesses, number(d.Service.StormWithout), number(d.Service.StormBeside), number(d.Service.StormCPU))
}
