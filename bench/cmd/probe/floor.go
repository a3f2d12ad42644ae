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
	"github.com/attune-hpc/attune/controller/bpf/uprobe"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

const (
	// turnCalls are timed at once, some 10 ms, in each of turnsPerRepeat turns of
	// all arrangements: what disturbs the machine meets all alike.
	turnCalls      = 20_000
	turnsPerRepeat = 10
	// floodCalls are made at once to see how many events a second there are: they
	// take a quarter of a second, so that Attune's ring, which holds 52,428
	// records, has to be read meanwhile.
	floodCalls = 300_000
)

// floor is what uprobes cost by themselves, and what Attune's add: CPU time of
// a call in nanoseconds, medians.
type floor struct {
	Function string         `json:"function"`
	Plain    present.Figure `json:"plain_ns"`
	Perf     present.Figure `json:"empty_program_perf_event_ns"`
	Multi    present.Figure `json:"empty_program_uprobe_multi_ns"`
	Clock    present.Figure `json:"program_that_asks_the_time_ns"`
	Count    present.Figure `json:"count_ns"`
	Event    present.Figure `json:"event_ns"`
	Coarse   present.Figure `json:"event_coarse_time_ns"`
	// Medians over the turns of what one took over another in the same turn:
	// count and events over an empty program, event over one that asks the time.
	CountOverMulti  present.Figure `json:"count_over_empty"`
	EventOverMulti  present.Figure `json:"event_over_empty"`
	CoarseOverMulti present.Figure `json:"event_coarse_time_over_empty"`
	EventOverClock  present.Figure `json:"event_over_time"`
	// Rate is events a second, Lost how many of all events were lost.
	Rate present.Figure `json:"events_per_second"`
	Lost uint64         `json:"lost"`
}

// arrangement puts a probe on the function of its name of a running program,
// until the returned function is called.
type arrangement struct {
	name   string
	attach func(f *floorBench, function string) (detach func() error, err error)
}

// floorBench is the program under test and what may be put on it.
type floorBench struct {
	program string
	pid     int
	in      io.Writer
	out     *bufio.Scanner
	empty   map[emptyprobe.Kind]*emptyprobe.Probe
	uprobes *uprobe.Uprobes
}

// measureFloor compares Attune's uprobes with an empty BPF program on the same
// function, in turns.
func measureFloor(ctx context.Context, programs workload.Catalogue, repeats int) (floors []floor, err error) {
	f := &floorBench{empty: make(map[emptyprobe.Kind]*emptyprobe.Probe)}
	if f.program, err = programs.Compile(ctx, "uprobe_floor"); err != nil {
		return nil, err
	}
	if f.uprobes, err = uprobe.New(uprobe.Options{CloseTimeout: time.Minute}); err != nil {
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
	go func() { ended <- f.uprobes.Run(ctx, func(uprobe.Batch) {}) }()
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
	in, out, err := measure.StartPiped(command)
	if err != nil {
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

// measure takes all arrangements in turns, each on a function of its own.
func (f *floorBench) measure(kind string, repeats int) (one floor, err error) {
	detach, err := f.attach(kind)
	defer func() { err = errors.Join(err, detach()) }()
	if err != nil {
		return floor{}, err
	}
	cpu := map[string][]float64{}
	for range repeats * turnsPerRepeat {
		for _, a := range arrangements {
			nanos, _, err := f.call(kind+"_"+a.name, turnCalls)
			if err != nil {
				return floor{}, err
			}
			cpu[a.name] = append(cpu[a.name], nanos)
		}
	}
	var real []float64
	for range repeats {
		_, nanos, err := f.call(kind+"_event", floodCalls)
		if err != nil {
			return floor{}, err
		}
		real = append(real, nanos)
	}
	return f.judge(kind, cpu, real), nil
}

// attach puts every arrangement on its function. What it returns must be called
// even if it fails.
func (f *floorBench) attach(kind string) (detach func() error, err error) {
	var all []func() error
	detach = func() (err error) {
		for _, one := range all {
			err = errors.Join(err, one())
		}
		return err
	}
	for _, a := range arrangements {
		function := kind + "_" + a.name
		one, err := a.attach(f, function)
		if err != nil {
			return detach, fmt.Errorf("%s: %w", a.name, err)
		}
		all = append(all, one)
		// The kernel sets its trampoline up at the first hits.
		if _, _, err := f.call(function, turnCalls/10); err != nil {
			return detach, err
		}
	}
	return detach, nil
}

// judge makes the figures of what each call took.
func (f *floorBench) judge(kind string, cpu map[string][]float64, real []float64) floor {
	median := func(name string) present.Figure { return present.Figure(measure.Median(cpu[name])) }
	over := func(name, base string) present.Figure {
		return present.Figure(measure.Median(measure.Ratios(cpu[name], cpu[base])))
	}
	return floor{
		Function: kind, Plain: median("plain"), Perf: median("perf"), Multi: median("multi"), Clock: median("clock"),
		Count: median("count"), Event: median("event"), Coarse: median("coarse"),
		CountOverMulti: over("count", "multi"), EventOverMulti: over("event", "multi"),
		CoarseOverMulti: over("coarse", "multi"), EventOverClock: over("event", "clock"),
		Rate: present.Figure(1e9 / measure.Median(real)), Lost: f.uprobes.Lost(),
	}
}

var arrangements = []arrangement{
	{"plain", func(*floorBench, string) (func() error, error) { return func() error { return nil }, nil }},
	{"perf", empty(emptyprobe.PerfEvent)},
	{"multi", empty(emptyprobe.Multi)},
	{"clock", empty(emptyprobe.MultiClock)},
	{"count", attune(uprobe.Spec{Point: 1, Delivery: attunev1.Delivery_DELIVERY_AGGREGATE})},
	{"event", attune(uprobe.Spec{Point: 2, Delivery: attunev1.Delivery_DELIVERY_EVENT})},
	{"coarse", attune(uprobe.Spec{Point: 3, Delivery: attunev1.Delivery_DELIVERY_EVENT, CoarseTime: true})},
}

// empty puts a program that does next to nothing on a function.
func empty(kind emptyprobe.Kind) func(*floorBench, string) (func() error, error) {
	return func(f *floorBench, function string) (func() error, error) {
		attached, err := f.empty[kind].Attach(f.program, function)
		if err != nil {
			return nil, err
		}
		return attached.Close, nil
	}
}

// attune puts one of Attune's points on a function.
func attune(spec uprobe.Spec) func(*floorBench, string) (func() error, error) {
	return func(f *floorBench, function string) (func() error, error) {
		symbol, err := emptyprobe.Find(f.program, function)
		if err != nil {
			return nil, err
		}
		spec.Path, spec.Symbols = f.program, []uprobe.Symbol{{Name: symbol.Name, Offset: symbol.FileOffset}}
		attachment, err := f.uprobes.Attach(spec)
		if err != nil {
			return nil, err
		}
		if err := f.uprobes.Watch(uprobe.Watch{PID: f.pid, Point: spec.Point}); err != nil {
			attachment.Close()
			return nil, err
		}
		return func() error {
			attachment.Close()
			return errors.Join(f.uprobes.UnwatchProcess(f.pid, spec.Point), f.uprobes.Settle(context.Background()))
		}, nil
	}
}

func printFloors(to *os.File, floors []floor) {
	var table present.Table
	table.Row("uprobe on", "ns", "empty, perf event", "empty, uprobe_multi", "asks the time", "count", "event", "coarse time", "events/s", "lost")
	for _, f := range floors {
		number := func(v present.Figure) string { return present.Number(float64(v)) }
		table.Row(f.Function, number(f.Plain), number(f.Perf), number(f.Multi), number(f.Clock), number(f.Count), number(f.Event),
			number(f.Coarse), number(f.Rate), fmt.Sprint(f.Lost))
	}
	table.Print(to)
}

// floorGoals: at most a tenth more than an empty program, on either kind of probe,
// and a million events a second of which none is lost. An event has the time,
// which alone may be more than that tenth of a cheap probe; it is held to a
// program that asks the time.
func floorGoals(floors []floor) (goals []present.Goal) {
	for _, f := range floors {
		goals = append(goals,
			present.Goal{Name: "uprobe count over an empty program, " + f.Function, Value: f.CountOverMulti, Limit: 1.10},
			present.Goal{Name: "uprobe event with coarse time over an empty program, " + f.Function, Value: f.CoarseOverMulti, Limit: 1.10},
			present.Goal{Name: "uprobe event over one that asks the time, " + f.Function, Value: f.EventOverClock, Limit: 1.10},
			present.Goal{Name: "events a second, " + f.Function, Value: f.Rate, Limit: 1e6, AtLeast: true},
			present.Goal{Name: "events lost, " + f.Function, Value: present.Figure(f.Lost), Limit: 0},
		)
	}
	return goals
}
