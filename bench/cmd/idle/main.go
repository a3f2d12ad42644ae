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
	"os/exec"
	"path/filepath"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
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
)

// document is what -json writes.
type document struct {
	benchmark.Common
	Tunlets int `json:"tunlets"`
	// None is with one tunlet asleep, which costs nothing beyond Attune itself.
	None    cost `json:"none"`
	Asleep  cost `json:"asleep"`
	Running cost `json:"running"`
	window  time.Duration
}

func main() {
	tunlets := flag.Int("tunlets", 20, "number of tunlets")
	window := flag.Duration("for", 20*time.Second, "time that is measured")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "idle", Packages: []string{"libc6"}, Document: d,
		Measure: func(ctx context.Context) error {
			d.Tunlets, d.window = *tunlets, *window
			return d.measure(ctx)
		},
	}))
}

func (d *document) measure(ctx context.Context) error {
	binary := filepath.Join(d.Scratch, "idle")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./bench/cmd/attune-tunlet-idle").CombinedOutput(); err != nil {
		return fmt.Errorf("build the tunlet: %w: %s", err, out)
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
	for _, m := range []struct {
		to      *cost
		tunlets []string
	}{{&d.None, asleep[:1]}, {&d.Asleep, asleep}, {&d.Running, running}} {
		if *m.to, err = costOf(ctx, command(d.Scratch, m.tunlets, settled+d.window+settled), d.window); err != nil {
			return err
		}
	}
	return nil
}

// link makes the tunlets of a kind and returns their names.
func (d *document) link(kind string) (names []string, err error) {
	for i := range d.Tunlets {
		name := fmt.Sprintf("%s-%d", kind, i+1)
		if err := os.Symlink("idle", filepath.Join(d.Scratch, "attune-tunlet-"+name)); err != nil {
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
	return append(line, "--", "sleep", fmt.Sprint(d.Seconds()))
}

// Print shows the figures and the goals.
func (d *document) Print() {
	var table present.Table
	table.Row("", "CPU, of a core", "memory", "processes")
	row := func(name string, c cost) {
		table.Row(name, fmt.Sprintf("%.2f %%", 100*c.CPU), present.Number(c.MB)+" MB", fmt.Sprint(c.Processes))
	}
	row("attune, one tunlet asleep", d.None)
	row(fmt.Sprintf("%d tunlets asleep", d.Tunlets), d.Asleep)
	row(fmt.Sprintf("%d tunlets running, nothing to do", d.Tunlets), d.Running)
	fmt.Println()
	table.Print(os.Stdout)
	d.Goals = []present.Goal{
		{Name: fmt.Sprintf("%d idle tunlets: CPU, beyond that of one", d.Tunlets), Value: present.Figure(100 * (d.Asleep.CPU - d.None.CPU)), Unit: "%", Limit: 0.5},
		{Name: fmt.Sprintf("%d idle tunlets: memory with all of Attune", d.Tunlets), Value: present.Figure(d.Asleep.MB), Unit: "MB", Limit: 150},
	}
}
