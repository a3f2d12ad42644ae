// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/attune-hpc/attune/bench/internal/emptyprobe"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/workload"
	"github.com/attune-hpc/attune/controller/bpf"
	"github.com/attune-hpc/attune/internal/objfile"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// floorCalls are timed at once: a quarter of a second, so that Attune's ring,
// which holds 52,428 records, has to be read meanwhile.
const floorCalls = 300_000

// floor is what uprobes cost by themselves, and what Attune's add: CPU time of
// a call in nanoseconds, medians.
type floor struct {
	Function string         `json:"function"`
	Plain    present.Figure `json:"plain_ns"`
	Perf     present.Figure `json:"empty_program_perf_event_ns"`
	Multi    present.Figure `json:"empty_program_uprobe_multi_ns"`
	Count    present.Figure `json:"count_ns"`
	Event    present.Figure `json:"event_ns"`
	// Ratio is Event over Multi, of each round its own.
	Ratio present.Figure `json:"event_over_multi"`
	// Rate is events a second, Lost how many of all events were lost.
	Rate present.Figure `json:"events_per_second"`
	Lost uint64         `json:"lost"`
}

// arrangement puts a probe on a function of a running program, until the
// returned function is called.
type arrangement struct {
	name   string
	attach func(f *floorBench, symbol objfile.Symbol) (detach func() error, err error)
}

// floorBench is the program under test and what may be put on it.
type floorBench struct {
	program string
	pid     int
	in      io.Writer
	out     *bufio.Scanner
	empty   map[emptyprobe.Kind]*emptyprobe.Probe
	uprobes *bpf.Uprobes
}

// measureFloor compares Attune's uprobes with an empty BPF program on the same
// function, in turns.
func measureFloor(ctx context.Context, programs workload.Catalogue, repeats int) (floors []floor, err error) {
	f := &floorBench{empty: make(map[emptyprobe.Kind]*emptyprobe.Probe)}
	if f.program, err = programs.UprobeFloor(ctx); err != nil {
		return nil, err
	}
	if f.uprobes, err = bpf.NewUprobes(bpf.UprobesOptions{CloseTimeout: time.Minute}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	for _, kind := range []emptyprobe.Kind{emptyprobe.PerfEvent, emptyprobe.Multi, emptyprobe.MultiClock} {
		probe, err := emptyprobe.New(kind)
		if err != nil {
			return nil, err
		}
		f.empty[kind] = probe
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- f.uprobes.Run(ctx, func(bpf.Batch) {}) }()
	defer func() {
		cancel()
		err = errors.Join(err, <-ended)
	}()
	stop, err := f.start(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, function := range []string{"push", "nop5"} {
		one, err := f.measure(function, repeats)
		if err != nil {
			return nil, err
		}
		floors = append(floors, one)
	}
	return floors, nil
}

func (f *floorBench) close() error {
	errs := []error{f.uprobes.Close()}
	for _, probe := range f.empty {
		errs = append(errs, probe.Close())
	}
	return errors.Join(errs...)
}

// start runs the program; the returned function ends it.
func (f *floorBench) start(ctx context.Context) (stop func() error, err error) {
	command := exec.CommandContext(ctx, f.program)
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	f.pid, f.in, f.out = command.Process.Pid, in, bufio.NewScanner(out)
	return func() error { return errors.Join(in.Close(), command.Wait()) }, nil
}

// call lets the program call a function and returns the nanoseconds of CPU
// time and of real time that each call took.
func (f *floorBench) call(function string, calls int) (cpu, real float64, err error) {
	if _, err := fmt.Fprintf(f.in, "%s %d\n", function, calls); err != nil {
		return 0, 0, err
	}
	if !f.out.Scan() {
		return 0, 0, fmt.Errorf("%s ended: %w", f.program, f.out.Err())
	}
	_, err = fmt.Sscan(f.out.Text(), &cpu, &real)
	return cpu, real, err
}

// measure takes all arrangements in turns.
func (f *floorBench) measure(function string, repeats int) (floor, error) {
	symbol, err := emptyprobe.Find(f.program, function+"_function")
	if err != nil {
		return floor{}, err
	}
	cpu, real := map[string][]float64{}, []float64{}
	for range repeats {
		for _, a := range arrangements {
			c, r, err := f.once(a, function, symbol)
			if err != nil {
				return floor{}, fmt.Errorf("%s: %w", a.name, err)
			}
			cpu[a.name] = append(cpu[a.name], c)
			if a.name == "event" {
				real = append(real, r)
			}
		}
	}
	median := func(name string) present.Figure { return present.Figure(measure.Median(cpu[name])) }
	return floor{
		Function: function, Plain: median("plain"), Perf: median("perf event"), Multi: median("uprobe_multi"),
		Count: median("count"), Event: median("event"),
		Ratio: present.Figure(measure.Median(measure.Ratios(cpu["event"], cpu["uprobe_multi"]))),
		Rate:  present.Figure(1e9 / measure.Median(real)), Lost: f.uprobes.Lost(),
	}, nil
}

// once times one arrangement, after a short run that the kernel needs to set
// its trampoline up.
func (f *floorBench) once(a arrangement, function string, symbol objfile.Symbol) (cpu, real float64, err error) {
	detach, err := a.attach(f, symbol)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, detach()) }()
	if _, _, err := f.call(function, floorCalls/100); err != nil {
		return 0, 0, err
	}
	return f.call(function, floorCalls)
}

var arrangements = []arrangement{
	{"plain", func(*floorBench, objfile.Symbol) (func() error, error) { return func() error { return nil }, nil }},
	{"perf event", empty(emptyprobe.PerfEvent)},
	{"uprobe_multi", empty(emptyprobe.Multi)},
	{"clock", empty(emptyprobe.MultiClock)},
	{"count", attune(attunev1.Delivery_DELIVERY_AGGREGATE)},
	{"event", attune(attunev1.Delivery_DELIVERY_EVENT)},
}

// empty puts a program that does next to nothing on the function.
func empty(kind emptyprobe.Kind) func(*floorBench, objfile.Symbol) (func() error, error) {
	return func(f *floorBench, symbol objfile.Symbol) (func() error, error) {
		attached, err := f.empty[kind].Attach(f.program, symbol.Name)
		if err != nil {
			return nil, err
		}
		return attached.Close, nil
	}
}

// attune puts one of Attune's points on the function. Its Close waits for
// nothing, which here would be to the cost of the next.
func attune(delivery attunev1.Delivery) func(*floorBench, objfile.Symbol) (func() error, error) {
	return func(f *floorBench, symbol objfile.Symbol) (func() error, error) {
		point := uint16(delivery)
		attachment, err := f.uprobes.Attach(bpf.UprobeSpec{
			Path: f.program, Symbols: []bpf.Symbol{{Name: symbol.Name, Offset: symbol.FileOffset}},
			Point: point, Delivery: delivery,
		})
		if err != nil {
			return nil, err
		}
		if err := f.uprobes.WatchProcess(f.pid, point); err != nil {
			attachment.Close()
			return nil, err
		}
		return func() error {
			attachment.Close()
			return errors.Join(f.uprobes.UnwatchProcess(f.pid, point), f.uprobes.Settle(context.Background()))
		}, nil
	}
}

func printFloors(to *os.File, floors []floor) {
	var table present.Table
	table.Row("uprobe on", "ns", "empty, perf event", "empty, uprobe_multi", "count", "event", "ratio", "events/s", "lost")
	for _, f := range floors {
		number := func(v present.Figure) string { return present.Number(float64(v)) }
		table.Row(f.Function, number(f.Plain), number(f.Perf), number(f.Multi), number(f.Count), number(f.Event),
			present.Times(float64(f.Ratio)), number(f.Rate), fmt.Sprint(f.Lost))
	}
	table.Print(to)
}

// floorGoals: an event within a tenth of an empty program, on either kind of
// probe, and a million a second of which none is lost.
func floorGoals(floors []floor) (goals []present.Goal) {
	for _, f := range floors {
		goals = append(goals,
			present.Goal{Name: "uprobe event over an empty program, " + f.Function, Value: f.Ratio, Limit: 1.10},
			present.Goal{Name: "events a second, " + f.Function, Value: f.Rate, Limit: 1e6, AtLeast: true},
			present.Goal{Name: "events lost, " + f.Function, Value: present.Figure(f.Lost), Limit: 0},
		)
	}
	return goals
}
