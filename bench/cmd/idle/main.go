// SPDX-License-Identifier: Apache-2.0

// Command idle measures what tunlets cost a program that sleeps: CPU time and
// memory of Attune with all its processes, when the tunlets are asleep and, for
// comparison, when each runs and has nothing to do.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/counter"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

const (
	// settled is how old a run is when it is measured: everything that happens
	// at its start is over.
	settled = 5 * time.Second
	// asking is how long the first run takes, in which the tunlets are asked
	// what they are.
	asking = 15 * time.Second
	// program is what sleeps.
	program = "sleep"
)

// document is what -json writes.
type document struct {
	benchmark.Common
	Tunlets int `json:"tunlets"`
	// None is with one tunlet asleep, which costs nothing beyond Attune itself. Each
	// has one figure for each round.
	None    []cost `json:"none"`
	Asleep  []cost `json:"asleep"`
	Running []cost `json:"running"`

	rounds int
	window time.Duration
}

func main() {
	tunlets := flag.Int("tunlets", 20, "number of tunlets")
	rounds := flag.Int("n", 5, "runs of each kind; medians are shown")
	window := flag.Duration("for", 20*time.Second, "time that is measured of each run")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "idle", Packages: []string{"libc6"}, Quick: benchmark.Quick{"for": "10s"}, Document: d,
		Measure: func(ctx context.Context) error {
			d.Tunlets, d.rounds, d.window = *tunlets, *rounds, *window
			return d.measure(ctx)
		},
	}))
}

func (d *document) measure(ctx context.Context) error {
	if err := counter.BuildTunlet(ctx, d.Scratch, "idle"); err != nil {
		return err
	}
	asleep, err := d.link("asleep")
	if err != nil {
		return err
	}
	running, err := d.link("running")
	if err != nil {
		return err
	}
	if _, err := measure.Run(ctx, command(d.Scratch, asleep, asking)); err != nil {
		return err
	}
	kinds := []struct {
		to      *[]cost
		tunlets []string
	}{{&d.None, asleep[:1]}, {&d.Asleep, asleep}, {&d.Running, running}}
	for round := range d.rounds {
		for i := range kinds { // another one first each time
			kind := kinds[(i+round)%len(kinds)]
			c, err := costOf(ctx, command(d.Scratch, kind.tunlets, settled+d.window+settled), d.window)
			if err != nil {
				return err
			}
			*kind.to = append(*kind.to, c)
		}
	}
	return nil
}

// link makes the tunlets of a kind and returns their names.
func (d *document) link(kind string) (names []string, err error) {
	for i := range d.Tunlets {
		name := fmt.Sprintf("%s-%d", kind, i+1)
		if err := os.Symlink("attune-tunlet-idle", filepath.Join(d.Scratch, "attune-tunlet-"+name)); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// command runs a program that sleeps, with some tunlets.
func command(dir string, tunlets []string, d time.Duration) []string {
	line := []string{"bin/attune", "run", "--quiet", "--tunlet-dir", dir}
	for _, name := range tunlets {
		line = append(line, "--tunlet", name)
	}
	return append(line, "--", program, fmt.Sprint(d.Seconds()))
}

// Print shows the figures and the goals.
func (d *document) Print() {
	var table present.Table
	table.Row(fmt.Sprintf("median of %d", len(d.None)), "CPU, of a core", "memory", "processes")
	row := func(name string, all []cost) {
		processes := 0
		for _, c := range all {
			processes = max(processes, c.Processes)
		}
		table.Row(name, fmt.Sprintf("%.2f %%", 100*measure.Median(cpu(all))), present.Number(measure.Median(mb(all)))+" MB", fmt.Sprint(processes))
	}
	row("attune, one tunlet asleep", d.None)
	row(fmt.Sprintf("%d tunlets asleep", d.Tunlets), d.Asleep)
	row(fmt.Sprintf("%d tunlets running, nothing to do", d.Tunlets), d.Running)
	fmt.Println()
	table.Print(os.Stdout)
	more := measure.Median(measure.Differences(cpu(d.Asleep), cpu(d.None)))
	d.Goals = []present.Goal{
		{Name: fmt.Sprintf("%d idle tunlets: CPU, beyond that of one", d.Tunlets), Value: present.Figure(100 * more), Unit: "%", Limit: 0.5},
		{Name: fmt.Sprintf("%d idle tunlets: memory with all of Attune", d.Tunlets), Value: present.Figure(measure.Median(mb(d.Asleep))), Unit: "MB", Limit: 150},
	}
}
