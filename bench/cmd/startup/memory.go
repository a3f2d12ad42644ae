// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/attune-hpc/attune/bench/internal/catalogue"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/bench/internal/tuned"
	"github.com/attune-hpc/attune/bench/internal/workload"
	"github.com/attune-hpc/attune/internal/beat"
	"github.com/attune-hpc/attune/internal/procid"
)

// memory runs a program that gives Attune something to do, and watches the
// peak resident memory of Attune's own processes from outside.
func (d *document) memory(ctx context.Context, attune tuned.Attune, programs workload.Catalogue) error {
	storm, missing := catalogue.Named("malloc/C").Prepare(ctx, programs)
	if missing != "" {
		return fmt.Errorf("%s: %s", storm.Name, missing)
	}
	var watching sync.WaitGroup
	looking, stop := context.WithCancel(ctx)
	watching.Go(func() { d.PeakMB = watchPeaks(looking) })
	_, err := attune.Run(ctx, storm.Default(3))
	stop()
	watching.Wait()
	return err
}

// watchPeaks returns the greatest peak per name of program until ctx ends, in MB.
func watchPeaks(ctx context.Context) map[string]float64 {
	peaks := map[string]float64{}
	for {
		notePeaks(peaks)
		if !beat.Pause(ctx, 50*time.Millisecond) {
			return peaks
		}
	}
}

// notePeaks looks at every process whose executable is one of those built here.
// A process that ends meanwhile is passed over.
func notePeaks(peaks map[string]float64) {
	processes, err := procid.List()
	if err != nil {
		return
	}
	built, err := filepath.Abs("bin")
	if err != nil {
		return
	}
	for _, pid := range processes {
		exe := procid.Executable(pid)
		if filepath.Dir(exe) != built {
			continue
		}
		if status, err := procid.ReadStatus(pid); err == nil {
			name := filepath.Base(exe)
			peaks[name] = max(peaks[name], float64(status.Peak)/1e6)
		}
	}
}

// Print shows the figures and the goals.
func (d *document) Print() {
	var table present.Table
	table.Row("median of "+fmt.Sprint(len(d.MainPlain)), "plain", "attune run", "more")
	row := func(name string, plain, tuned []float64) {
		table.Row(name, present.Number(measure.Median(plain))+" ms", present.Number(measure.Median(tuned))+" ms",
			present.Number(measure.Median(measure.Differences(tuned, plain)))+" ms")
	}
	row("start to main", d.MainPlain, d.MainTuned)
	row("true, in all", d.TruePlain, d.TrueTuned)
	fmt.Println()
	table.Print(os.Stdout)
	fmt.Println()
	d.CPU.print()
	d.Packed.print()

	more := measure.Median(measure.Differences(d.MainTuned, d.MainPlain))
	d.Goals = []present.Goal{
		{Name: "time to main, more than plain", Value: present.Figure(more), Unit: "ms", Limit: 60},
		{Name: "attune run -- true, in all", Value: present.Figure(measure.Median(d.TrueTuned)), Unit: "ms", Limit: 100},
		d.Packed.goal(),
		d.peak("attune", 60), d.peak("attune-tunlets", 25),
	}
}

// peak is the goal of a program's memory. One that was not seen was not measured.
func (d *document) peak(name string, limit present.Figure) present.Goal {
	value, seen := d.PeakMB[name]
	if !seen {
		value = math.NaN()
	}
	return present.Goal{Name: name + ": peak memory", Value: present.Figure(value), Unit: "MB", Limit: limit}
}
