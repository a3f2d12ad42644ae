// SPDX-License-Identifier: Apache-2.0

// Command account measures what it costs to know what a command took: short programs,
// small reads and writes and one that computes, by themselves and under `attune account`,
// time(1), strace(1), perf(1) and resource_monitor of cctools, in rounds of one run
// each. CPU time is that of the command and of the tool; it is right on a busy machine as well.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

// program is one that is accounted for.
type program struct {
	name    string
	command []string
}

var programs = []program{
	{"true", []string{"true"}},
	{"2,000 short programs", []string{"sh", "-c", `i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i + 1)); done`}},
	{disk, transfers("/var/tmp", 25_600, "direct")},
	{cached, transfers("/var/tmp", 100_000, "")},
	{tmpfs, transfers("/dev/shm", 100_000, "")},
	{computing, []string{"sh", "-c", `head -c 300000000 /dev/zero | sha256sum >/dev/null`}},
}

// Those that goals are about.
const (
	disk      = "100 MB to disk and back, 4 KB each"
	cached    = "400 MB through the page cache"
	tmpfs     = "400 MB to tmpfs and back"
	computing = "computing"
)

// transfers writes blocks of 4 KB to a file in a folder, and reads them, with a flag of dd or
// none.
func transfers(folder string, blocks int, flag string) []string {
	const script = `f=$1/attune-bench-$$; trap 'rm -f "$f"' EXIT
		dd if=/dev/zero of="$f" bs=4k count="$2" ${3:+oflag=$3} 2>/dev/null && dd if="$f" of=/dev/null bs=4k ${3:+iflag=$3} 2>/dev/null`
	return []string{"sh", "-c", script, "transfers", folder, strconv.Itoa(blocks), flag}
}

// tools are what stands before a program; the first is nothing.
var tools = []struct {
	name    string
	command []string
	once    bool   // it takes so long that one round is enough
	program string // what must be installed, if it is not the command's first word
}{
	{name: "plain"},
	{name: "attune account", command: []string{"bin/attune", "account", "--quiet", "--"}},
	{name: "attune account --files", command: []string{"bin/attune", "account", "--quiet", "--files", "--"}},
	{name: "attune, no root", command: []string{"bin/attune", "account", "--quiet", "--without-root", "--no-cgroup", "--"}},
	{name: "time", command: []string{"time", "-o", os.DevNull}},
	{name: "perf stat", command: []string{"perf", "stat", "-o", os.DevNull, "--"}},
	{name: "strace -f -c", command: []string{"strace", "-f", "-c", "-o", os.DevNull}, once: true},
	{name: "resource_monitor", once: true, program: "resource_monitor", command: []string{"sh", "-c",
		`d=$(mktemp -d) && resource_monitor -i 1 -O "$d/account" -- "$@"; e=$?; rm -r "$d"; exit $e`, "monitored"}},
}

// times are those of one program with one tool, a value for each round.
type times struct {
	Wall []float64 `json:"wall_seconds"`
	CPU  []float64 `json:"cpu_seconds"`
}

// document is what -json writes.
type document struct {
	benchmark.Common
	// Times are by program and tool.
	Times map[string]map[string]*times `json:"times"`
	// Missing are tools that are not installed.
	Missing []string `json:"missing,omitempty"`
}

func main() {
	rounds := flag.Int("n", 7, "runs of each program with each tool; medians are shown")
	d := &document{Times: make(map[string]map[string]*times)}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "account", Packages: []string{"strace", "time", "linux-perf", "coop-computing-tools"}, Quick: benchmark.Quick{"n": "5"}, Document: d,
		Measure: func(ctx context.Context) error { return d.measure(ctx, *rounds) },
	}))
}

func (d *document) measure(ctx context.Context, rounds int) error {
	for _, p := range programs {
		d.Times[p.name] = make(map[string]*times)
	}
	for _, tool := range tools {
		if tool.command == nil {
			continue
		}
		if _, err := exec.LookPath(cmp.Or(tool.program, tool.command[0])); err != nil {
			d.Missing = append(d.Missing, tool.name)
		}
	}
	for range rounds {
		for _, p := range programs {
			if err := d.round(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// round runs a program once with each tool.
func (d *document) round(ctx context.Context, p program) error {
	for _, tool := range tools {
		t := d.Times[p.name][tool.name]
		if slices.Contains(d.Missing, tool.name) || tool.once && t != nil {
			continue
		}
		result, err := measure.Run(ctx, append(append([]string(nil), tool.command...), p.command...))
		if err != nil {
			return fmt.Errorf("%s with %s: %w", p.name, tool.name, err)
		}
		if t == nil {
			t = &times{}
			d.Times[p.name][tool.name] = t
		}
		t.Wall, t.CPU = append(t.Wall, result.Wall.Seconds()), append(t.CPU, result.CPU.Seconds())
	}
	return nil
}

// Print shows the figures and the goals.
func (d *document) Print() {
	var table present.Table
	table.Row("median", "tool", "time", "CPU time", "ratio of times", "ratio of CPU times")
	for _, p := range programs {
		plain := d.Times[p.name]["plain"]
		for _, tool := range tools {
			if t := d.Times[p.name][tool.name]; t != nil {
				table.Row(p.name, tool.name, milliseconds(t.Wall), milliseconds(t.CPU), ratio(t.Wall, plain.Wall), ratio(t.CPU, plain.CPU))
			}
		}
	}
	table.Print(os.Stdout)
	for _, missing := range d.Missing {
		fmt.Println("not installed:", missing)
	}
	overhead := func(program, tool, against string, limit present.Figure) present.Goal {
		all := d.Times[program]
		return present.Goal{Name: fmt.Sprintf("%s: CPU time with %s / %s", program, tool, against), Limit: limit,
			Value: present.Figure(measure.Median(measure.Ratios(all[tool].CPU, all[against].CPU)))}
	}
	const files = "attune account --files"
	d.Goals = append(d.Goals,
		overhead("2,000 short programs", "attune account", "plain", 1.1),
		overhead(disk, files, "attune account", 1.05),
		overhead(computing, files, "attune account", 1.05),
		overhead(cached, files, "attune account", 1.05), // missed: docs/design/0068
		overhead(tmpfs, files, "attune account", 1.05),
		present.Goal{Name: "true: time with attune account", Unit: "ms", Limit: 60,
			Value: present.Figure(1000 * measure.Median(d.Times["true"]["attune account"].Wall))})
}

func ratio(values, against []float64) string {
	return fmt.Sprintf("%.2f", measure.Median(values)/measure.Median(against))
}

func milliseconds(values []float64) string {
	return present.Number(1000*measure.Median(values)) + " ms"
}
