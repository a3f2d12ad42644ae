// SPDX-License-Identifier: Apache-2.0

// Command scale measures one Analyzer with the controllers of a large site: they
// are simulated, but speak the real protocol over mutual TLS, with two
// connections each, and deliver aggregates of the points that a tunlet has asked
// for. It shows memory, CPU time, and how soon the Analyzer answers a controller
// with a command meanwhile, for growing numbers of controllers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/bench/internal/benchmark"
	"github.com/attune-hpc/attune/bench/internal/counter"
	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// document is what -json writes.
type document struct {
	benchmark.Common
	// Sessions share the controllers; each controller has so many processes, and
	// sends an aggregate of each point of each of them every second.
	Sessions  int    `json:"sessions"`
	Processes int    `json:"processes_per_controller"`
	Points    int    `json:"points"`
	Steps     []step `json:"steps"`
	// Calm are sessions in which nothing is wrong.
	Calm []calm `json:"calm_sessions"`
}

// step is a number of controllers.
type step struct {
	Controllers int `json:"controllers"`
	// Hosts and Processes are those whose processes run by the Analyzer's reports. Ended
	// is how many streams of controllers the Analyzer has ended, which none is to be.
	Hosts     int   `json:"hosts_served"`
	Processes int   `json:"processes_served"`
	Ended     int64 `json:"streams_ended"`
	// ResidentMB is the Analyzer's, without its tunlets.
	ResidentMB float64 `json:"resident_mb"`
	// CPU is what the Analyzer takes, in cores; Simulation what all controllers
	// together take of the same machine.
	CPU        float64 `json:"cpu_cores"`
	Simulation float64 `json:"simulation_cpu_cores"`
	// PerSecond is how many aggregates the Analyzer took, Lost how many of those
	// sent it dropped, as its reports count them.
	PerSecond float64 `json:"aggregates_per_second"`
	Lost      uint64  `json:"lost"`
	// RoundTrips are the times from a controller's message to the Analyzer's
	// command that it leads to, milliseconds.
	RoundTrips []float64 `json:"round_trips_ms"`
}

// betweenTrips keeps the measurement from being a load of its own.
const betweenTrips = 20 * time.Millisecond

func main() {
	controllers := flag.Int("controllers", 1000, "controllers in the last step")
	steps := flag.Int("steps", 4, "numbers of controllers up to that")
	sessions := flag.Int("sessions", 1000, "sessions in which nothing is wrong")
	length := flag.Duration("length", 10*time.Second, "how long each is measured")
	d := &document{Sessions: 10, Processes: 10, Points: 10}
	os.Exit(benchmark.Main(benchmark.Options{
		Name: "scale", Quick: benchmark.Quick{"steps": "1"}, Document: d,
		Measure: func(ctx context.Context) error { return d.measure(ctx, *controllers, *steps, *sessions, *length) },
	}))
}

func (d *document) measure(ctx context.Context, controllers, steps, sessions int, length time.Duration) error {
	if err := d.measureControllers(ctx, controllers, steps, length); err != nil {
		return err
	}
	return d.measureCalm(ctx, sessions, length)
}

// measureControllers measures growing numbers of controllers, of a few sessions with
// a tunlet that has them busy.
func (d *document) measureControllers(ctx context.Context, controllers, steps int, length time.Duration) (err error) {
	tunlets := filepath.Join(d.Scratch, "tunlets") // which the Analyzer's user can read
	if err := counter.BuildTunlet(ctx, tunlets, "bench"); err != nil {
		return err
	}
	a, err := startAnalyzer(ctx, filepath.Join(d.Scratch, "busy"), tunlets)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.end()) }()
	var points []string
	for i := range d.Points {
		points = append(points, "solver:step"+strconv.Itoa(i))
	}
	registration, err := a.register(ctx, map[string]*attunev1.TunletOptions{
		"bench": {Values: map[string]string{"points": strings.Join(points, " ")}},
	})
	if err != nil {
		return err
	}
	load := (&load{
		analyzer: a, registration: registration, sessions: d.Sessions, processes: d.Processes, measured: aggregates,
	}).start()
	defer load.close()
	for i := range steps {
		if err := load.grow(ctx, controllers*(i+1)/steps); err != nil {
			return err
		}
		s, err := d.step(ctx, a, load, length)
		if err != nil {
			return err
		}
		d.Steps = append(d.Steps, s)
	}
	return nil
}

// step measures with the controllers that there are.
func (d *document) step(ctx context.Context, a *analyzer, load *load, length time.Duration) (step, error) {
	s := step{Controllers: load.size()}
	if err := measure.Pause(ctx, length/2); err != nil { // until it has settled
		return s, err
	}
	before, err := a.usage()
	if err != nil {
		return s, err
	}
	earlier, err := a.served(ctx)
	if err != nil {
		return s, err
	}
	for end := time.Now().Add(length); time.Now().Before(end); {
		trip, err := load.roundTrip(ctx)
		if err != nil {
			return s, err
		}
		s.RoundTrips = append(s.RoundTrips, measure.Milliseconds(trip))
		if err := measure.Pause(ctx, betweenTrips); err != nil {
			return s, err
		}
	}
	after, err := a.usage()
	if err != nil {
		return s, err
	}
	later, err := a.served(ctx)
	passed := after.at.Sub(before.at).Seconds()
	s.ResidentMB = after.residentMB
	s.CPU, s.Simulation = (after.cpu-before.cpu)/passed, (after.own-before.own)/passed
	s.PerSecond, s.Lost = float64(later.aggregates-earlier.aggregates)/passed, later.lost-earlier.lost
	s.Hosts, s.Processes, s.Ended = len(later.hosts), later.processes, load.ended.Load()
	return s, err
}

// Print implements benchmark.Document.
func (d *document) Print() {
	var table present.Table
	table.Row("controllers", "served", "their processes", "streams ended", "aggregates/s", "lost", "memory", "Analyzer CPU", "simulation CPU", "command median", "p99")
	for _, s := range d.Steps {
		table.Row(fmt.Sprint(s.Controllers), fmt.Sprint(s.Hosts), fmt.Sprint(s.Processes), fmt.Sprint(s.Ended), present.Number(s.PerSecond), fmt.Sprint(s.Lost),
			present.Number(s.ResidentMB)+" MB", present.Number(s.CPU)+" cores", present.Number(s.Simulation)+" cores",
			present.Number(measure.Quantile(s.RoundTrips, 0.5))+" ms", present.Number(measure.Quantile(s.RoundTrips, 0.99))+" ms")
	}
	table.Print(os.Stdout)
	first, last := d.Steps[0], d.Steps[len(d.Steps)-1]
	if last.Controllers > first.Controllers {
		fmt.Printf("each further controller: %s kB\n", present.Number(1024*(last.ResidentMB-first.ResidentMB)/float64(last.Controllers-first.Controllers)))
	}
	d.printCalm()
	d.Goals = append(d.goals(last), d.calmGoals()...)
}

// goals are those of the last step.
func (d *document) goals(last step) []present.Goal {
	sent := float64(last.Controllers * d.Processes * d.Points) // a second
	return []present.Goal{
		{Name: "controllers served", Value: present.Figure(last.Hosts), Limit: 1000, AtLeast: true},
		{Name: "their processes", Value: present.Figure(last.Processes), Limit: 10_000, AtLeast: true},
		{Name: "streams that ended", Value: present.Figure(last.Ended), Limit: 0},
		{Name: "aggregates taken / sent", Value: present.Figure(last.PerSecond / sent), Limit: 0.95, AtLeast: true},
		{Name: "aggregates lost", Value: present.Figure(last.Lost), Limit: 0},
		{Name: "command round trip, p99", Value: present.Figure(measure.Quantile(last.RoundTrips, 0.99)), Unit: "ms", Limit: 50},
	}
}
