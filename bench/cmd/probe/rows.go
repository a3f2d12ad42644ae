// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
)

// row is what measure points that are together in a program do there.
type row struct {
	does   string
	points []string // * is the program's name
	at     []limit  // the functions
	byHand string   // the program's function that does the same for itself
}

// limit is the most that the points of a row may add to a call of a function. What reads
// the clock is beside what the program takes to do the same for itself: how long that
// takes is the machine's.
type limit struct {
	function string
	nanos    present.Figure // 0: it is shown only, or beside
}

// own is the function at which the points of several rows are.
const own = "own_function"

// captureOne takes of one call in 1,000 a parameter, and a string behind another one.
const captureOne = " take arg0, arg1:str every 1000"

// rows are measured each in a program of its own.
var rows = []row{
	{does: "count", points: []string{"*:" + own, "libc.so.6:labs", "*:kernel_function"}, at: []limit{{own, 5}, {"labs", 5}, {"kernel_function", 0}}},
	{does: "record", points: []string{"*:" + own + " each", "libc.so.6:labs each"}, at: []limit{{own, 0}, {"labs", 0}}, byHand: "recorded_by_hand"},
	{does: "duration", points: []string{"*:" + own + "%time", "libc.so.6:labs%time"}, at: []limit{{own, 0}, {"labs", 0}}, byHand: "timed_by_hand"},
	{does: "one in 1,000", points: []string{"*:" + own + captureOne, "libc.so.6:a64l take arg0:str, caller every 1000"}, at: []limit{{own, 15}, {"a64l", 15}}},
	{does: together, points: []string{"*:" + own, "*:" + own + " each", "*:" + own + "%time", "*:" + own + captureOne}, at: []limit{{own, 0}}},
	{does: "exit", points: []string{"*:" + own + "%return"}, at: []limit{{own, 12}}},
}

const (
	// together is the row whose points are those of the rows before it, at one function.
	together = "these four"
	// togetherLimit is how much dearer they may be than the dearest of them.
	togetherLimit = 1.5
	// rowCalls are timed at once: a thread's ring has room for a record of each.
	rowCalls = "20000"
)

// figure is what a row adds to a call of one function, the medians over the turns.
type figure struct {
	Does      string         `json:"does"`
	Function  string         `json:"function"`
	Mechanism string         `json:"mechanism"`
	Reason    string         `json:"reason,omitempty"`
	Plain     present.Figure `json:"plain_ns"`
	Watched   present.Figure `json:"watched_ns"`
	Added     present.Figure `json:"added_ns"`
	ByHand    present.Figure `json:"by_hand_ns,omitzero"` // what the program adds that does the same for itself

	limit  present.Figure
	added  []float64 // of each turn
	byHand []float64 // what it adds in the turn before
}

// measureRows runs the program in turns without points and with those of each row.
func (d *document) measureRows(ctx context.Context, repeats int, program string) error {
	plain := map[string][]float64{}
	watched, last := make([]map[string][]float64, len(rows)), make([]tuned.Run, len(rows))
	for range repeats {
		result, err := measure.Run(ctx, []string{program, rowCalls})
		if err != nil {
			return err
		}
		note(plain, result)
		for i, r := range rows {
			if last[i], err = r.run(ctx, program, d.Scratch); err != nil {
				return fmt.Errorf("%s: %w", r.does, err)
			}
			if watched[i] == nil {
				watched[i] = map[string][]float64{}
			}
			note(watched[i], last[i].Result)
		}
	}
	for i, r := range rows {
		for _, at := range r.at {
			f := compare(at, plain[at.function], watched[i][at.function], last[i])
			f.Does = r.does
			if r.byHand != "" {
				f.byHand = measure.Differences(plain[r.byHand], plain[own])
				f.ByHand = present.Figure(measure.Median(f.byHand))
			}
			d.Figures = append(d.Figures, f)
		}
	}
	d.Goals = append(d.Goals, rowGoals(d.Figures)...)
	return nil
}

// run runs the program once with the points of the row, whatever they cost; again
// where the machine was so busy that one came too late.
func (r row) run(ctx context.Context, program, scratch string) (run tuned.Run, err error) {
	flags := []string{"--mode", "observe", "--budget", "100"}
	for _, p := range r.points {
		flags = append(flags, "--probe", strings.Replace(p, "*", filepath.Base(program), 1))
	}
	attune := tuned.Attune{Binary: "bin/attune", Scratch: scratch, Flags: flags}
	for range 3 {
		if run, err = attune.Run(ctx, []string{program, rowCalls}); err != nil {
			return run, err
		}
		if err = unseen(run.Report); err == nil {
			return run, nil
		}
	}
	return run, err
}

// unseen returns an error if a point saw no call. Tunlets have points of their own, at
// hooks.
func unseen(r report.Report) error {
	for _, p := range r.Points {
		if p.Hits == 0 && strings.Contains(p.Target, ":") {
			return fmt.Errorf("%s, %s: %s", p.Target, cmp.Or(p.State, "not placed"), cmp.Or(p.Reason, "no hits"))
		}
	}
	return nil
}

// note takes down the lines "FUNCTION NANOSECONDS" of a run.
func note(nanos map[string][]float64, result measure.Result) {
	for _, line := range result.Lines {
		var function string
		var value float64
		if n, err := fmt.Sscan(line.Text, &function, &value); n == 2 && err == nil {
			nanos[function] = append(nanos[function], value)
		}
	}
}

// compare returns the figure of a function.
func compare(at limit, plain, watched []float64, last tuned.Run) figure {
	f := figure{
		Function: at.function, limit: at.nanos,
		Plain: present.Figure(measure.Median(plain)), Watched: present.Figure(measure.Median(watched)),
	}
	for _, p := range last.Report.Points {
		if strings.Contains(p.Target, ":"+at.function) {
			f.Mechanism, f.Reason = p.Mechanism, p.Reason
		}
	}
	f.added = measure.Differences(watched, plain)
	f.Added = present.Figure(measure.Median(f.added))
	return f
}

// rowGoals: each figure within its limit, or not above what it costs by hand; and points at one function together not
// much dearer than the dearest by itself in the same turn.
func rowGoals(figures []figure) (goals []present.Goal) {
	var dearest []float64
	for _, f := range figures {
		name := fmt.Sprintf("%s: %s by %s", f.Function, f.Does, f.Mechanism)
		switch {
		case f.Does == together:
			goals = append(goals, present.Goal{
				Name:  name + ", to the dearest of them",
				Value: present.Figure(measure.Median(measure.Ratios(f.added, dearest))), Limit: togetherLimit,
			})
		case f.byHand != nil:
			goals = append(goals, present.Goal{
				Name: name + ", to the same by hand", Value: present.Figure(measure.Median(measure.Ratios(f.added, f.byHand))), Limit: 1,
			})
		case f.limit > 0:
			goals = append(goals, present.Goal{Name: name + ", added per call", Value: f.Added, Unit: "ns", Limit: f.limit})
		}
		if f.Function != own {
			continue
		}
		if dearest == nil {
			dearest = make([]float64, len(f.added))
		}
		for i := range min(len(dearest), len(f.added)) {
			dearest[i] = max(dearest[i], f.added[i])
		}
	}
	return goals
}
