// SPDX-License-Identifier: Apache-2.0

// Command inject measures how long a thread of a running program is stopped
// when DMLib is brought into it, again and again, and what is left behind.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/workload"
	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/dmlib"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// document is what -json writes.
type document struct {
	benchmark.Common
	Threads int `json:"threads"`
	// Calls says that the program waits in system calls that a stop interrupts.
	Calls  bool `json:"calls,omitempty"`
	Rounds int  `json:"rounds"`
	// Stopped is how long the thread that was borrowed did not do its own work,
	// Disturbed how long others were stopped for a look, per round.
	StoppedMedian   present.Figure `json:"stopped_median_ms"`
	StoppedP99      present.Figure `json:"stopped_p99_ms"`
	StoppedMost     present.Figure `json:"stopped_most_ms"`
	DisturbedMedian present.Figure `json:"disturbed_median_ms"`
	DisturbedP99    present.Figure `json:"disturbed_p99_ms"`
	// Entered is from the decision to DMLib's being ready.
	Entered present.Figure `json:"entered_median_ms"`
	// First is the first round, which loads the library.
	First present.Figure `json:"first_stopped_ms"`
	// Failed rounds left the program as it was; Stayed slots were not given back.
	Failed int `json:"failed"`
	Stayed int `json:"stayed"`
	// Left is what the program has more at the end than after the first rounds.
	Left resources `json:"left"`
	// Write is how long a variable took to be written.
	Write present.Figure `json:"write_median_us"`
}

// warmUp is how many rounds come before the first look at what there is: the C
// library keeps the stack and the arena of a thread that has ended.
const warmUp = 20

func main() {
	rounds := flag.Int("n", 1000, "times that the program is entered and let go")
	threads := flag.Int("threads", 4, "threads of the program")
	calls := flag.Bool("calls", false, "a program whose threads wait in twenty system calls with a timeout that a stop interrupts, and look what they return")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "inject", Packages: []string{"libc6"}, Quick: benchmark.Quick{"n": "300"}, Document: d,
		Measure: func(ctx context.Context) error {
			d.Threads, d.Rounds, d.Calls = *threads, *rounds, *calls
			return d.measure(ctx)
		},
	}))
}

// measure enters the program and lets it go, round after round.
func (d *document) measure(ctx context.Context) error {
	library, err := dmlib.Install(d.Scratch)
	if err != nil {
		return err
	}
	target, err := d.start(ctx)
	if err != nil {
		return err
	}
	defer target.kill()
	cache := objfile.NewCache()
	defer cache.Close()
	if err := d.enterAll(ctx, target, inject.Options{Library: library, Cache: cache}); err != nil {
		return err
	}
	if !d.Calls {
		if err := d.writes(target); err != nil {
			return err
		}
	}
	d.conclude(target)
	return nil
}

// start starts the program that is entered.
func (d *document) start(ctx context.Context) (*program, error) {
	programs, source := workload.Repository, "entered" // it checks what its memory holds
	if d.Calls {
		// Its threads wait in system calls with a timeout that a stop interrupts, and look
		// what it returns.
		programs.Sources, source = "internal/testing/targets/programs", "timeouts"
	}
	path, err := programs.Compile(ctx, source, "-pthread")
	if err != nil {
		return nil, err
	}
	p, err := start(ctx, path, d.Threads)
	if err == nil && d.Calls {
		var stat procid.Stat
		stat, err = procid.ReadStat(p.pid)
		p.calls, d.Threads = true, stat.Threads-1
	}
	return p, err
}

func (d *document) enterAll(ctx context.Context, target *program, options inject.Options) error {
	var stopped, disturbed, entered []float64
	var before resources
	for round := range warmUp + d.Rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		if round == warmUp {
			before = resourcesOf(target.pid)
		}
		began := time.Now()
		result, err := enter(ctx, target.pid, options)
		if err != nil {
			d.Failed++
			fmt.Fprintln(os.Stderr, "inject: round", round, err)
			continue
		}
		if round == 0 {
			d.First = present.Figure(measure.Milliseconds(result.Stopped))
		}
		if round >= warmUp {
			stopped = append(stopped, measure.Milliseconds(result.Stopped))
			disturbed = append(disturbed, measure.Milliseconds(result.Disturbed))
			entered = append(entered, measure.Milliseconds(time.Since(began)))
		}
		stayed, err := leave(ctx, result)
		if err != nil {
			return err
		}
		d.Stayed += stayed
	}
	d.Left = resourcesOf(target.pid).minus(before)
	d.StoppedMedian, d.StoppedP99 = present.Figure(measure.Median(stopped)), present.Figure(measure.Quantile(stopped, 0.99))
	d.StoppedMost = present.Figure(measure.Quantile(stopped, 1))
	d.DisturbedMedian, d.DisturbedP99 = present.Figure(measure.Median(disturbed)), present.Figure(measure.Quantile(disturbed, 0.99))
	d.Entered = present.Figure(measure.Median(entered))
	return nil
}

func enter(ctx context.Context, pid int, options inject.Options) (inject.Result, error) {
	process, err := proc.Open(pid)
	if err != nil {
		return inject.Result{}, err
	}
	defer process.Close()
	return inject.Inject(ctx, process, options)
}

// leaveTimeout bounds how long the program may take to come to a hook.
const leaveTimeout = 2 * time.Second

func leave(ctx context.Context, result inject.Result) (stayed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	stayed = len(inject.GiveBack(ctx, result.Memory, result.Slots))
	return stayed, result.Memory.Close()
}

func (d *document) conclude(target *program) {
	wrong, ended := target.end()
	lost := 0
	if ended != nil {
		lost = 1
		fmt.Fprintln(os.Stderr, "inject: the program:", ended)
	}
	count := func(name string, n int) present.Goal { return present.Goal{Name: name, Value: present.Figure(n)} }
	d.Goals = []present.Goal{
		{Name: "stopped, median", Value: d.StoppedMedian, Unit: "ms", Limit: 1},
		{Name: "stopped, 99 of 100", Value: d.StoppedP99, Unit: "ms", Limit: 5},
		count("rounds that did not succeed", d.Failed), count("programs that died", lost),
		count("wrong bytes in the program", wrong), count("GOT slots that stayed", d.Stayed),
		count("descriptors left", d.Left.Descriptors), count("mappings left", d.Left.Mappings),
		count("threads left", d.Left.Threads), count("address space left, KB", d.Left.Kilobytes),
	}
}

// Print shows the figures and the goals.
func (d *document) Print() {
	fmt.Println()
	var table present.Table
	table.Row("", "median", "99 of 100", "most")
	number := func(f present.Figure) string { return present.Number(float64(f)) }
	table.Row("ms the borrowed thread was stopped", number(d.StoppedMedian), number(d.StoppedP99), number(d.StoppedMost))
	table.Row("ms others were, for a look", number(d.DisturbedMedian), number(d.DisturbedP99))
	table.Row("ms until DMLib was ready", number(d.Entered))
	if !d.Calls {
		table.Row("us to write a variable", number(d.Write))
	}
	table.Print(os.Stdout)
	fmt.Printf("\n%d rounds in a program of %d threads; the first, which loads the library, stopped it for %s ms\n",
		d.Rounds, d.Threads, number(d.First))
}
