// SPDX-License-Identifier: Apache-2.0

// Command redis prints how many requests a second redis-server, as Debian builds it,
// answers with measure points at functions that each command passes through, beside
// how many without.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

// points are a count, a duration, and of one call in 1,000 the client and the key.
var points = []string{
	"redis-server:processCommand",
	"redis-server:call%time",
	"redis-server:lookupKey take db=arg0:ptr, key=arg1->8->0:str every 1000",
}

// load is what redis-benchmark asks for.
type load struct {
	name string
	// requests of each kind in a turn, and how many a client sends at a time.
	requests, atATime int
	// limit is the most that the points may take of the requests, %; 0: it is shown
	// only.
	limit present.Figure
}

// loads: as redis-benchmark asks by itself, 50 clients that wait for each answer; and
// 16 requests at a time, where a request takes less than the system calls of the first.
var loads = []load{
	{"a request at a time", 10_000, 1, 2},
	{"16 at a time", 50_000, 16, 0},
}

// pairs of turns are taken at each start of the servers.
const pairs = 20

// figure is one load, medians.
type figure struct {
	Load    string         `json:"load"`
	Plain   present.Figure `json:"plain_requests_per_second"`
	Watched present.Figure `json:"watched_requests_per_second"`
	// Fewer is how many fewer there are with points, the median over the starts of the
	// medians over the pairs.
	Fewer present.Figure `json:"fewer_percent"`
	// CPU is the server's CPU time of a request without points in nanoseconds, More how
	// much more it is with them: what the machine does beside disturbs it less.
	CPU  present.Figure `json:"plain_cpu_ns"`
	More present.Figure `json:"more_cpu_percent"`
}

// document is what -json writes.
type document struct {
	benchmark.Common
	Points  []string `json:"points"`
	Figures []figure `json:"figures"`
}

func main() {
	starts := flag.Int("n", 7, "starts of both servers; at each their turns are compared in pairs")
	d := &document{Points: points}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "redis", Packages: []string{"redis-server"}, Quick: benchmark.Quick{"n": "5"}, Document: d,
		Measure: func(ctx context.Context) error { return d.measure(ctx, *starts) },
	}))
}

// measured is what one load gave.
type measured struct {
	plain, watched series    // of all turns
	rates, nanos   []float64 // with points to without, of each start
}

// series is what a server did in its turns.
type series struct {
	rates []float64 // requests per second
	nanos []float64 // CPU time of a request
}

func (s *series) add(other series) {
	s.rates, s.nanos = append(s.rates, other.rates...), append(s.nanos, other.nanos...)
}

// measure starts both servers again and again, for two of the same program differ by
// where their memory lies.
func (d *document) measure(ctx context.Context, starts int) error {
	all := make([]measured, len(loads))
	for i := range starts {
		dir := filepath.Join(d.Scratch, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := once(ctx, dir, all); err != nil {
			return err
		}
	}
	for i, l := range loads {
		f := figure{
			Load: l.name, Plain: present.Figure(measure.Median(all[i].plain.rates)), Watched: present.Figure(measure.Median(all[i].watched.rates)),
			Fewer: present.Figure(100 * (1 - measure.Median(all[i].rates))),
			CPU:   present.Figure(measure.Median(all[i].plain.nanos)), More: present.Figure(100 * (measure.Median(all[i].nanos) - 1)),
		}
		d.Figures = append(d.Figures, f)
		if l.limit > 0 {
			d.Goals = append(d.Goals, present.Goal{Name: "requests fewer with three points, " + l.name, Value: f.Fewer, Unit: "%", Limit: l.limit})
		}
	}
	return nil
}

// once starts both servers and gives them their loads in turns, each first every other
// time.
func once(ctx context.Context, dir string, all []measured) (err error) {
	plain, watched := newServer(dir, "plain"), newServer(dir, "watched")
	if err := plain.start(ctx); err != nil {
		return err
	}
	if err := watched.startWatched(ctx, points); err != nil {
		return endBoth(ctx, err, plain, watched)
	}
	for i, l := range loads {
		var without, with series
		for turn := range pairs {
			order := []turnOf{{plain, &without}, {watched, &with}}
			if turn%2 == 1 {
				order[0], order[1] = order[1], order[0]
			}
			for _, o := range order {
				rate, nanos, err := o.server.ask(ctx, l)
				if err != nil {
					return endBoth(ctx, err, plain, watched)
				}
				o.noted.add(series{[]float64{rate}, []float64{nanos}})
			}
		}
		all[i].plain.add(without)
		all[i].watched.add(with)
		all[i].rates = append(all[i].rates, measure.Median(measure.Ratios(with.rates, without.rates)))
		all[i].nanos = append(all[i].nanos, measure.Median(measure.Ratios(with.nanos, without.nanos)))
	}
	if err := endBoth(ctx, nil, plain, watched); err != nil {
		return err
	}
	return watched.seen(len(points))
}

// turnOf is a server in its turn, and where it is noted what it did.
type turnOf struct {
	server *server
	noted  *series
}

// Print shows the figures.
func (d *document) Print() {
	fmt.Println()
	for _, p := range points {
		fmt.Println(p)
	}
	fmt.Println()
	var table present.Table
	table.Row("GET and SET", "requests/s", "with points", "fewer", "CPU, ns", "more")
	for _, f := range d.Figures {
		table.Row(f.Load, present.Number(float64(f.Plain)), present.Number(float64(f.Watched)), fmt.Sprintf("%.2f %%", float64(f.Fewer)),
			present.Number(float64(f.CPU)), fmt.Sprintf("%.2f %%", float64(f.More)))
	}
	table.Print(os.Stdout)
}
