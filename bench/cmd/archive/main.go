// SPDX-License-Identifier: Apache-2.0

// Command archive measures how fast an archive of tasks takes new ones, many at a time
// and one by one, how soon it has a quantile of any field, and how large its page becomes.
// Archive and tasks are made for it: 40 programs, whose tasks have five processes each.
// With -at it is in an empty database of a PostgreSQL server, in which they stay.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/present"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/archive/report"
	"github.com/attune-hpc/attune/internal/clock"
)

// document is what -json writes.
type document struct {
	benchmark.Common
	Tasks int `json:"tasks"`
	// Batch is tasks a second, in transactions of a thousand; Single is one task in one
	// transaction, the archive opened for it, as after each command.
	Batch  present.Figure `json:"insert_per_second"`
	CPU    present.Figure `json:"insert_per_cpu_second"`
	Single present.Figure `json:"single_ms"`
	// Quantile is the time for the 95th percentile of a field over all tasks, in the
	// slowest field; Category over the tasks of one category. The least of three tries.
	Quantile present.Figure `json:"quantile_ms"`
	Slowest  string         `json:"slowest_field"`
	Category present.Figure `json:"category_quantile_ms"`
	Estimate present.Figure `json:"estimate_ms"`
	Report   present.Figure `json:"report_ms"`
	Page     present.Figure `json:"page_mb"`
	File     present.Figure `json:"file_mb"`
}

func main() {
	tasks := flag.Int("tasks", 100_000, "tasks in the archive")
	at := flag.String("at", "", "`URL` of an empty PostgreSQL database; empty: a file")
	d := &document{}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "archive", Quick: benchmark.Quick{}, Document: d,
		Measure: func(ctx context.Context) error { return d.measure(ctx, *tasks, *at) },
	}))
}

const (
	programs = 40
	batch    = 1000
	singles  = 50
)

// measure measures all figures, in an archive of its own.
func (d *document) measure(ctx context.Context, tasks int, at string) error {
	path := cmp.Or(at, filepath.Join(d.Scratch, "archive.db"))
	s, err := archive.Open(ctx, path)
	if err != nil {
		return err
	}
	defer s.Close()
	d.Tasks = tasks
	if err := d.fill(ctx, s, tasks); err != nil {
		return err
	}
	if err := d.single(ctx, path, tasks); err != nil {
		return err
	}
	if err := d.ask(ctx, s); err != nil {
		return err
	}
	page, err := os.Create(filepath.Join(d.Scratch, "page.html"))
	if err != nil {
		return err
	}
	defer page.Close()
	began := time.Now()
	r, err := report.Make(ctx, s, archive.Filter{}, time.Now())
	if err != nil {
		return err
	}
	if err := r.WriteHTML(page); err != nil {
		return err
	}
	d.Report = since(began)
	files := map[string]*present.Figure{page.Name(): &d.Page}
	if at == "" {
		files[path] = &d.File
	}
	for file, into := range files {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		*into = present.Figure(float64(info.Size()) / 1e6)
	}
	return nil
}

// fill adds the tasks, and counts only the time in the archive.
func (d *document) fill(ctx context.Context, s *archive.Store, tasks int) error {
	random := rand.New(rand.NewPCG(1, 2))
	var took, used time.Duration
	for first := 0; first < tasks; first += batch {
		var some []*archive.Task
		for n := first; n < min(first+batch, tasks); n++ {
			some = append(some, newTask(random, n))
		}
		began, before := time.Now(), clock.Process()
		added, err := s.Add(ctx, some...)
		if err != nil {
			return err
		}
		took += time.Since(began)
		used += clock.Process() - before
		if added.New != len(some) || added.Forgotten != 0 {
			return fmt.Errorf("%d tasks became %+v", len(some), added)
		}
	}
	d.Batch, d.CPU = present.Figure(float64(tasks)/took.Seconds()), present.Figure(float64(tasks)/used.Seconds())
	return nil
}

// single adds tasks as commands do, one after the other.
func (d *document) single(ctx context.Context, path string, tasks int) error {
	random := rand.New(rand.NewPCG(3, 4))
	began := time.Now()
	for n := range singles {
		s, err := archive.Open(ctx, path)
		if err != nil {
			return err
		}
		if _, err := s.Add(ctx, newTask(random, tasks+n)); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	d.Single = since(began) / singles
	return nil
}

// ask measures quantiles and an estimate.
func (d *document) ask(ctx context.Context, s *archive.Store) error {
	for _, field := range archive.Fields() {
		for category, into := range map[string]*present.Figure{"": &d.Quantile, "program7": &d.Category} {
			least := present.Figure(math.Inf(1))
			for range 3 {
				began := time.Now()
				values, err := s.Values(ctx, archive.Filter{Category: category}, field)
				if err != nil {
					return err
				}
				archive.Describe(field, values, 0.95)
				least = min(least, since(began))
			}
			if least > *into {
				*into = least
				if category == "" {
					d.Slowest = field
				}
			}
		}
	}
	began := time.Now()
	_, err := s.Estimate(ctx, "program7", 1e9)
	d.Estimate = since(began)
	return err
}

// since is the time since then in milliseconds.
func since(began time.Time) present.Figure {
	return present.Figure(float64(time.Since(began).Microseconds()) / 1e3)
}

// newTask makes the n-th task.
func newTask(random *rand.Rand, n int) *archive.Task {
	kind := random.IntN(programs)
	program := fmt.Sprintf("program%d", kind)
	input := uint64(random.ExpFloat64() * 1e9)
	memory := 2*input + uint64(random.IntN(1<<28))
	wall := 1 + random.ExpFloat64()*600
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Second)
	u := func(limit int) *uint64 { return new(uint64(random.IntN(limit))) }
	a := account.Account{
		Schema: account.SchemaID, Version: "bench", Command: []string{"/opt/bin/" + program, "--in", fmt.Sprintf("sample%d.dat", n)},
		Host: account.Host{Name: fmt.Sprintf("n%d", random.IntN(100)), Kernel: "6.1.0", CPUs: 64}, Exit: account.Exit{Type: account.ExitNormal, Code: new(random.IntN(40) / 39)},
		Start: start, End: start.Add(time.Duration(wall * 1e9)), WallSeconds: wall, CPUSeconds: new(wall * 1.9), UserSeconds: new(wall * 1.8), SystemSeconds: new(wall * 0.1),
		CoresAverage: new(1.9), CoresPeak: new(2.0), Processes: account.Processes{Total: u(1000), Peak: u(10), Left: new(uint64(0))},
		Memory:          account.Memory{Resident: &memory, Anonymous: new(memory / 2), Proportional: new(memory / 10 * 9), Virtual: new(2 * memory), Swap: u(2), Cgroup: new(memory + 1<<20)},
		IO:              account.IO{Read: &input, Written: u(1 << 30), ReadCalls: u(1 << 20), WrittenCalls: u(1 << 20), StorageRead: u(1 << 30), StorageWritten: u(1 << 30), NetworkReceived: u(1 << 20), NetworkSent: u(1 << 20)},
		ContextSwitches: account.Switches{Voluntary: u(1 << 16), Involuntary: u(1 << 16)}, Faults: account.Faults{Minor: u(1 << 20), Major: u(100)},
		Disk: account.Disk{Files: u(100), Bytes: u(1 << 32)}, Accuracy: map[string]account.Accuracy{"wall_seconds": account.Exact, "cpu_seconds": account.Exact, "memory.resident_peak_bytes": account.Sampled},
	}
	for p := range 5 {
		a.Tree = append(a.Tree, account.Process{
			PID: 1000 + p, Parent: 1000, Name: program, WallSeconds: wall, CPUSeconds: new(wall / 5), Memory: account.Memory{Resident: u(1 << 30)},
			IO: account.IO{Read: u(1 << 30), Written: u(1 << 30)}, Exit: &account.Exit{Type: account.ExitNormal, Code: new(0)},
		})
	}
	return &archive.Task{
		Schema: archive.SchemaID, Program: fmt.Sprintf("%064x", kind), Source: "attune", InputBytes: &input, Account: a,
		Asked: archive.Asked{MemoryBytes: 16 << 30, Cores: 4, WallSeconds: 7200, DiskBytes: 8 << 30},
	}
}

// Print implements benchmark.Document.
func (d *document) Print() {
	var t present.Table
	t.Row("what", "figure")
	t.Row("tasks", present.Number(float64(d.Tasks)))
	t.Row("insert, a thousand at a time", present.Number(float64(d.Batch))+"/s")
	t.Row("the same, by CPU time", present.Number(float64(d.CPU))+"/s")
	t.Row("insert of one, with opening", present.Number(float64(d.Single))+" ms")
	t.Row("quantile over all, slowest field "+d.Slowest, present.Number(float64(d.Quantile))+" ms")
	t.Row("quantile of a category, slowest field", present.Number(float64(d.Category))+" ms")
	t.Row("estimate", present.Number(float64(d.Estimate))+" ms")
	t.Row("page, made", present.Number(float64(d.Report))+" ms")
	t.Row("page, size", present.Number(float64(d.Page))+" MB")
	if d.File > 0 {
		t.Row("file", present.Number(float64(d.File))+" MB")
	}
	t.Print(os.Stdout)
	d.Goals = []present.Goal{
		{Name: "tasks inserted", Value: d.Batch, Unit: "/s", Limit: 5000, AtLeast: true},
		{Name: "quantile of any field", Value: d.Quantile, Unit: "ms", Limit: 200},
		{Name: "page", Value: d.Page, Unit: "MB", Limit: 3},
	}
}
