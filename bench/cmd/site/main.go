// SPDX-License-Identifier: Apache-2.0

// Command site is a site's day: a job with more ranks than cores on two nodes, as
// it is, with the best setting given beforehand, where Attune is on the nodes and
// nobody asks for anything, and packed by its owner where nothing is on the nodes.
// Beside it runs a job of another user's, which the policy lets be observed only.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
)

// leastGain is what was promised.
const leastGain = 20

// document is what -json writes; rates in steps per second.
type document struct {
	benchmark.Common
	Ranks   int      `json:"ranks"`
	Plain   rates    `json:"plain"`
	Best    rates    `json:"best_static"`
	Service tunedDay `json:"service"`
	Packed  tunedDay `json:"packed"`
	// Other is the other user's job, beside the one that was tuned.
	Other otherJob `json:"other_user"`

	seconds, plainSeconds float64
}

// tunedDay is what came of a job that was tuned.
type tunedDay struct {
	rates
	// Sessions is how many there were, and Hosts and Processes of all of them.
	Sessions  int      `json:"sessions"`
	Hosts     []string `json:"hosts"`
	Processes int      `json:"processes"`
	// Kept is in how many processes a change was kept.
	Kept int `json:"kept_in"`

	changes []tuned.Change
}

// otherJob is what came of the job of a user for whom the policy has only
// observing.
type otherJob struct {
	Processes int `json:"processes"`
	// Points counts measure points that were hit.
	Points  int    `json:"points"`
	Changes int    `json:"changes"`
	Refusal string `json:"refusal,omitempty"` // why a change was not made
}

func main() {
	d := &document{}
	flag.Float64Var(&d.seconds, "seconds", 40, "length of a job that is tuned")
	flag.Float64Var(&d.plainSeconds, "plain-seconds", 10, "length of a job that is not")
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "site", Packages: []string{"slurmd", "lammps", "openmpi-bin"}, Document: d,
		Measure: d.measure,
	}))
}

func (d *document) measure(ctx context.Context) error {
	if err := os.Chmod(d.Scratch, 0o755); err != nil {
		return err
	}
	if err := d.withoutAttune(ctx); err != nil {
		return err
	}
	if err := d.withService(ctx); err != nil {
		return err
	}
	d.judge()
	return nil
}

func (d *document) judge() {
	ranks := present.Figure(d.Ranks)
	all := func(name string, got int) present.Goal {
		return present.Goal{Name: name, Value: present.Figure(got), Limit: ranks, AtLeast: true}
	}
	gain := func(name string, of tunedDay) present.Goal {
		return present.Goal{Name: name, Value: present.Figure(of.Settled / d.Plain.Settled), Limit: leastGain, AtLeast: true}
	}
	d.Goals = []present.Goal{
		gain("service: tuned / plain", d.Service),
		all("service: ranks tuned in one session of both nodes", d.Service.keptTogether()),
		{Name: "service: changes in the other user's job", Value: present.Figure(d.Other.Changes), Limit: 0},
		{Name: "service: measure points in it", Value: present.Figure(d.Other.Points), Limit: 1, AtLeast: true},
		gain("packed: tuned / plain", d.Packed),
		all("packed: ranks tuned", d.Packed.Kept),
	}
}

// keptTogether is in how many ranks a change was kept, if it is one session.
func (t tunedDay) keptTogether() int {
	if t.Sessions != 1 || len(t.Hosts) != nodes {
		return 0
	}
	return t.Kept
}

// Print shows the figures and the goals.
func (d *document) Print() {
	fmt.Printf("\nLAMMPS, %d ranks on %d nodes, beside a job of another user\n\n", d.Ranks, nodes)
	var table present.Table
	table.Row("", "steps/s", "at its end", "gain", "sessions", "processes", "tuned")
	for _, row := range []struct {
		name string
		tunedDay
	}{
		{"as it is", tunedDay{rates: d.Plain}}, {"best static setting", tunedDay{rates: d.Best}},
		{"attuned on the nodes", d.Service}, {"packed, nothing on the nodes", d.Packed},
	} {
		sessions, processes, kept := "-", "-", "-"
		if row.Sessions > 0 {
			sessions, processes, kept = fmt.Sprint(row.Sessions), fmt.Sprint(row.Processes), fmt.Sprint(row.Kept)
		}
		table.Row(row.name, present.Number(row.Whole), present.Number(row.Settled),
			present.Times(row.Settled/d.Plain.Settled), sessions, processes, kept)
	}
	table.Print(os.Stdout)
	for _, c := range d.Service.changes {
		fmt.Printf("\n%s: %s %s → %s in %d processes on %s, %s: %s\n", c.Tunlet, c.Knob, c.Old, c.New, c.Processes,
			strings.Join(d.Service.Hosts, " and "), c.Verdict, c.Reason)
	}
	fmt.Printf("\nthe other user's job: %d processes, %d measure points, %d changes; %s\n",
		d.Other.Processes, d.Other.Points, d.Other.Changes, d.Other.Refusal)
}
