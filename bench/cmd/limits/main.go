// SPDX-License-Identifier: Apache-2.0

// Command limits measures how soon `attune account` ends a tree of processes that
// ignores signals, has lost its parents and is in sessions and groups of its own
// (internal/testing/targets/programs/stubborn.c), after it has taken more than a limit: for each
// field that can be limited, with root and as without. The processes themselves note when
// they exceed the limit and when they were last alive.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/workload"
)

// limits are of all fields that can have one.
var limits = []struct {
	field  string
	amount float64
}{
	{"wall_seconds", 0.2}, {"cpu_seconds", 0.05}, {"cores_peak", 0.05}, {"processes.peak", 9}, {"processes.total", 12},
	{"memory.resident_peak_bytes", 1e8}, {"memory.anonymous_peak_bytes", 1e8}, {"memory.virtual_peak_bytes", 3e8},
	{cgroupField, 1e8}, {"io.read_bytes", 1e7}, {"io.written_bytes", 1e7}, {"io.read_calls", 100}, {"io.written_calls", 100},
	{"io.storage_read_bytes", 1e6}, {"io.storage_written_bytes", 1e6},
	{"disk.files_peak", 50}, {"disk.bytes_peak", 4e6},
}

const cgroupField = "memory.cgroup_peak_bytes"

// modes are how the account is made.
var modes = []struct {
	name  string
	flags []string
}{{name: "root"}, {"without root", []string{"--without-root", "--no-cgroup"}}}

// settable says whether a field can have a limit in a mode: a control group that is not
// there is not measured.
func settable(field string, flags []string) bool { return field != cgroupField || flags == nil }

// figures are those of one field in one mode.
type figures struct {
	// LateMilliseconds is from the excess to the last sign of life of each round.
	LateMilliseconds []float64 `json:"late_milliseconds"`
	// OverPercent is what was taken at most, above the limit.
	OverPercent []float64 `json:"over_percent"`
	// Failed says what was not as it should be.
	Failed []string `json:"failed,omitempty"`
}

type document struct {
	benchmark.Common
	// Figures are by mode and field.
	Figures map[string]map[string]*figures `json:"figures"`
}

func main() {
	rounds := flag.Int("n", 200, "rounds in each mode, over all fields in turn")
	d := &document{Figures: make(map[string]map[string]*figures)}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "limits", Quick: benchmark.Quick{"n": strconv.Itoa(len(limits))}, Document: d,
		Measure: func(ctx context.Context) error { return d.measure(ctx, *rounds) },
	}))
}

func (d *document) measure(ctx context.Context, rounds int) error {
	program, err := workload.Catalogue{Sources: "internal/testing/targets/programs", Cache: d.Scratch}.Compile(ctx, "stubborn", "-O1")
	if err != nil {
		return err
	}
	for _, mode := range modes {
		d.Figures[mode.name] = make(map[string]*figures)
		for i := range rounds {
			limit := limits[i%len(limits)]
			if !settable(limit.field, mode.flags) {
				limit = limits[0]
			}
			f := d.Figures[mode.name][limit.field]
			if f == nil {
				f = &figures{}
				d.Figures[mode.name][limit.field] = f
			}
			if err := f.round(ctx, d.Scratch, program, limit.field, limit.amount, mode.flags); err != nil {
				return fmt.Errorf("%s, %s: %w", mode.name, limit.field, err)
			}
		}
	}
	return nil
}

// round runs the tree once, and a process beside it that is none of the command's.
func (f *figures) round(ctx context.Context, dir, program, field string, amount float64, flags []string) error {
	beside := exec.CommandContext(ctx, "sleep", "1000")
	if err := beside.Start(); err != nil {
		return err
	}
	defer func() {
		_ = beside.Process.Kill()
		_ = beside.Wait() // killed
	}()
	files, err := os.MkdirTemp(dir, "files")
	if err != nil {
		return err
	}
	defer os.RemoveAll(files)
	if strings.HasPrefix(field, "disk.") {
		flags = append(slices.Clone(flags), "--measure-dir", files)
	}
	lives, record := filepath.Join(files, "lives"), filepath.Join(dir, "account.json")
	value := fmt.Sprint(amount)
	arguments := append([]string{"account", "--quiet", "--json", record, "--grace", "0s", "--limit", field + "=" + value}, flags...)
	out, err := exec.CommandContext(ctx, "bin/attune", append(arguments, "--", program, lives, field, value)...).CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if code := exitCode(err); code != 124 {
		f.fail("attune ended with %d, %v: %s", code, err, out)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		return err
	}
	exceeded, err := f.judgeRecord(text, field, amount)
	if err != nil {
		return err
	}
	if !alive(uint64(beside.Process.Pid)) {
		f.fail("%s: a process that is none of the command's has ended", field)
	}
	return f.readLives(lives, field, exceeded)
}

// Print shows the figures and the goals.
func (d *document) Print() {
	var table present.Table
	table.Row("account", "field", "rounds", "median late", "most late", "most over", "failed")
	for _, mode := range modes {
		all, unmeasured := &figures{}, 0
		for _, limit := range limits {
			f := d.Figures[mode.name][limit.field]
			if f == nil {
				if settable(limit.field, mode.flags) {
					unmeasured++
				}
				continue
			}
			table.Row(mode.name, limit.field, fmt.Sprint(len(f.LateMilliseconds)), f.late(0.5), f.late(1), present.Number(most(f.OverPercent))+" %", fmt.Sprint(len(f.Failed)))
			all.LateMilliseconds, all.Failed = append(all.LateMilliseconds, f.LateMilliseconds...), append(all.Failed, f.Failed...)
		}
		for _, text := range all.Failed {
			fmt.Printf("%s: %s\n", mode.name, text)
		}
		d.Goals = append(d.Goals,
			present.Goal{Name: mode.name + ": fields without a round", Limit: 0, Value: present.Figure(unmeasured)},
			present.Goal{Name: mode.name + ": rounds that did not end as they should", Limit: 0, Value: present.Figure(len(all.Failed))},
			present.Goal{Name: mode.name + ": last sign of life after the excess", Unit: "ms", Limit: 100, Value: present.Figure(most(all.LateMilliseconds))})
	}
	table.Print(os.Stdout)
	if f := d.Figures["root"][cgroupField]; f != nil {
		d.Goals = append(d.Goals, present.Goal{Name: "memory over the limit of a control group", Unit: "%", Limit: 5, Value: present.Figure(most(f.OverPercent))})
	}
}
