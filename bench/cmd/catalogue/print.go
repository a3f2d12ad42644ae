// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

// Print shows the figures and the goals.
func (d *document) Print() {
	printProblems(d.Problems)
	printControls(d.Controls)
	printDebian(d.debian())
	printChanges(slices.Concat(d.Problems, d.Controls))
	for _, text := range d.Missing {
		fmt.Println("left out:", text)
	}
	for _, text := range d.Failed {
		fmt.Println("failed:", text)
	}
}

func printProblems(rows []result) {
	if len(rows) == 0 {
		return
	}
	fmt.Println()
	var table present.Table
	table.Row("program with a problem", "unit", "default", "attune run", "best static", "gain", "attune/best", "changed after", "predicted", "measured", "kept in", "others")
	for _, r := range rows {
		table.Row(r.Name, r.unit(),
			present.Number(measure.Median(r.Default)), present.Number(measure.Median(r.Tuned)), present.Number(measure.Median(r.Best)),
			present.Times(r.gain()), percent(r.ofBest()), seconds(measure.Median(r.Reaction)),
			present.Times(measure.Median(r.Predicted)), present.Times(measure.Median(r.Measured)),
			fmt.Sprintf("%d of %d", len(r.Reaction), len(r.Tuned)), fmt.Sprint(r.Others))
	}
	table.Print(os.Stdout)
}

func printControls(rows []result) {
	if len(rows) == 0 {
		return
	}
	fmt.Println()
	var table present.Table
	table.Row("program without one", "plain s", "attune s", "ratio", "lowest", "highest", "wrong changes")
	for _, r := range rows {
		ratios := measure.Ratios(r.Default, r.Tuned) // of each pair; their median is the ratio
		table.Row(r.Name, present.Number(1/measure.Median(r.Default)), present.Number(1/measure.Median(r.Tuned)),
			fmt.Sprintf("%.3f", 1/r.gain()), fmt.Sprintf("%.3f", slices.Min(ratios)), fmt.Sprintf("%.3f", slices.Max(ratios)),
			fmt.Sprint(r.Others))
	}
	table.Print(os.Stdout)
}

func printDebian(rows []result) {
	if len(rows) == 0 {
		return
	}
	fmt.Println()
	var table present.Table
	table.Row("unmodified program of Debian", "unit", "default", "attune run", "gain")
	for _, r := range rows {
		table.Row(r.Name, r.unit(), present.Number(measure.Median(r.Default)), present.Number(measure.Median(r.Tuned)), fmt.Sprintf("%.2fx", r.gain()))
	}
	table.Print(os.Stdout)
}

// printChanges names what was changed that was not expected, and what was not
// kept that was.
func printChanges(rows []result) {
	for _, r := range rows {
		printList(r.Name+" was also changed by", r.OtherChanges)
		printList(r.Name+" was not left with", r.NotKept)
		printList(r.Name+" was run without", r.NotLoaded)
	}
}

func printList(head string, lines []string) {
	if len(lines) > 0 {
		fmt.Printf("\n%s\n  %s\n", head, strings.Join(lines, "\n  "))
	}
}

func (r result) unit() string { return cmp.Or(r.Unit, "runs/s") }

func percent(share float64) string {
	if math.IsNaN(share) {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*share)
}

func seconds(value float64) string {
	if math.IsNaN(value) {
		return "-"
	}
	return fmt.Sprintf("%.2f s", value)
}
