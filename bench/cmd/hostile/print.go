// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

// Print shows the figures, and sets the goals.
func (d *document) Print() {
	number := present.Number
	var table present.Table
	table.Row("second user", "without attacks", "with attacks")
	for _, row := range []struct {
		name         string
		calm, attack float64
	}{
		{"gain of the job, median", median(d.Calm.Gains), median(d.Attacked.Gains)},
		{"exec to counted, ms, median", median(d.Calm.Detections), median(d.Attacked.Detections)},
		{"exec to counted, ms, p90", quantile(d.Calm.Detections), quantile(d.Attacked.Detections)},
	} {
		table.Row(row.name, number(row.calm), number(row.attack))
	}
	fmt.Println()
	table.Print(os.Stdout)
	fmt.Printf("\nmalloc of a program that is not involved, beside the attacker: %s rounds/s without the services, %s with them\n",
		number(median(d.MallocWithout.Second)), number(median(d.MallocBeside.Second)))
	fmt.Printf("of a second of the processor that it had: %s rounds without, %s with; the services took %s processors beside the attacks\n\n",
		number(median(d.MallocWithout.Processor)), number(median(d.MallocBeside.Processor)), number(d.taken()))
	var memory present.Table
	memory.Row("memory", "most at a time", "MB at most", "limit, MB", "processor time beside attacks, s")
	var shares []float64
	for _, kind := range []string{kindAttuned, kindSession, kindHelper, unitAttuned, kindAnalyzer, kindTunlets, unitAnalyzer} {
		if u, is := d.Memory[kind]; is {
			memory.Row(kind, fmt.Sprint(u.Count), number(u.Most), number(u.Limit), number(u.Seconds))
			shares = append(shares, u.Most/u.Limit)
		}
	}
	memory.Print(os.Stdout)
	fmt.Println("\nwhat the attacker did:")
	var attacks present.Table
	for _, what := range slices.Sorted(maps.Keys(d.Done)) {
		attacks.Row("  "+what, fmt.Sprint(d.Done[what]))
	}
	attacks.Print(os.Stdout)
	for _, name := range d.Idle {
		fmt.Println("did nothing in a round:", name)
	}
	for _, said := range d.Lost {
		fmt.Println("lost:", said)
	}
	for _, left := range d.Left {
		fmt.Println("left behind:", left)
	}
	d.setGoals(measure.Quantile(shares, 1))
}

// taken is how many processors the services took while they were attacked.
func (d *document) taken() (processors float64) {
	for _, u := range d.Memory {
		processors += u.Seconds / d.AttackedFor
	}
	return processors
}

// setGoals compares with the goals: worst is the greatest share of a limit of memory. What the
// second user's programs are detected later by is compared in the pairs of each round. Malloc in a
// second tells what others lose, and malloc in a second of the processor whether it is by
// something in their processes, or by what the services take of the processors.
func (d *document) setGoals(worst float64) {
	ratio := func(beside, without []float64) present.Figure {
		return present.Figure(median(measure.Ratios(beside, without)))
	}
	later := median(measure.Differences(d.Attacked.Detections, d.Calm.Detections))
	d.Goals = []present.Goal{
		{Name: "exec to counted, later by", Value: present.Figure(later), Unit: "ms", Limit: 10},
		{Name: "gain with attacks / without", Value: ratio(d.Attacked.Gains, d.Calm.Gains), Limit: 0.95, AtLeast: true},
		{Name: "malloc of others with services / without", Value: ratio(d.MallocBeside.Second, d.MallocWithout.Second), Limit: 0.98, AtLeast: true},
		{Name: "the same in a processor second", Value: ratio(d.MallocBeside.Processor, d.MallocWithout.Processor), Limit: 0.98, AtLeast: true},
		{Name: "services that ended", Value: present.Figure(d.Restarts), Limit: 0},
		{Name: "sessions of the second user that were lost", Value: present.Figure(len(d.Lost)), Limit: 0},
		{Name: "memory, share of its limit", Value: present.Figure(100 * worst), Unit: "%", Limit: 100},
		{Name: "attacks that did nothing in a round", Value: present.Figure(len(d.Idle)), Limit: 0},
		{Name: "left behind", Value: present.Figure(len(d.Left)), Limit: 0},
	}
}

func median(values []float64) float64 { return measure.Median(values) }

func quantile(values []float64) float64 { return measure.Quantile(values, 0.9) }
