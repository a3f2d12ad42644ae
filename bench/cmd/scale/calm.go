// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/bench/internal/present"
)

const (
	// catalogue is where the tunlets of Attune are.
	catalogue = "bin"
	// young is the age of a session before which its tunlets may not be there yet.
	young = 5 * time.Second
	// askedWithin is how long the tunlets of all sessions may take to be asked what
	// they are, and their processes to end where nobody needs them.
	askedWithin = time.Minute
	// wrongFor is how long something is wrong in a session: longer than any
	// condition that wakes a tunlet asks for.
	wrongFor = 3 * time.Second
	// wrongOver is the time in which it begins, in one session after the other.
	wrongOver = time.Minute
	// calmAgain is how long tunlets have to find nothing and rest.
	calmAgain = 20 * time.Second
)

// calm is what sessions cost in which nothing is wrong. Each has a program of its own
// on a node of its own, and all tunlets of the catalogue.
type calm struct {
	Sessions int `json:"sessions"`
	// Woken says that something was wrong in each of them before.
	Woken bool `json:"tunlets_woken_before"`
	// WokenSessions counts those in which a tunlet was woken.
	WokenSessions int `json:"sessions_woken"`
	// Ended is how many streams of controllers the Analyzer has ended so far.
	Ended int64 `json:"streams_ended"`
	// ResidentMB is the memory of the Analyzer, TunletMB that of all processes of
	// tunlets together.
	ResidentMB      float64 `json:"resident_mb"`
	TunletMB        float64 `json:"tunlet_mb"`
	TunletProcesses int     `json:"tunlet_processes"`
	// CPU, TunletCPU and Simulation are cores.
	CPU        float64 `json:"cpu_cores"`
	TunletCPU  float64 `json:"tunlet_cpu_cores"`
	Simulation float64 `json:"simulation_cpu_cores"`
}

// measureCalm measures sessions in which nothing is wrong: before anything was, and
// after.
func (d *document) measureCalm(ctx context.Context, sessions int, length time.Duration) (err error) {
	tunlets, err := filepath.Abs(catalogue)
	if err != nil {
		return err
	}
	a, err := startAnalyzer(ctx, filepath.Join(d.Scratch, "calm"), tunlets)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.end()) }()
	registration, err := a.register(ctx, nil)
	if err != nil {
		return err
	}
	programs := programs{sessions: sessions}
	load := (&load{analyzer: a, registration: registration, sessions: sessions, processes: 1, measured: programs.samples}).start()
	defer load.close()
	for _, sessions := range []int{1, sessions} { // the first has the tunlets asked what they are
		if err := load.grow(ctx, sessions); err != nil {
			return err
		}
		if err := a.awaitNoTunlet(ctx); err != nil {
			return err
		}
	}
	if err := d.look(ctx, load, calm{Sessions: sessions}, length); err != nil {
		return err
	}
	programs.goWrong()
	if err := measure.Pause(ctx, wrongOver+wrongFor+calmAgain); err != nil {
		return err
	}
	return d.look(ctx, load, calm{Sessions: sessions, Woken: true}, length)
}

// awaitNoTunlet waits until the processes have ended that were only started to ask
// tunlets what they are.
func (a *analyzer) awaitNoTunlet(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, askedWithin, errors.New("tunlets run although nothing is wrong"))
	defer cancel()
	if err := measure.Pause(ctx, young); err != nil {
		return err
	}
	for {
		if err := measure.Pause(ctx, interval); err != nil {
			return err
		}
		u, err := a.usage()
		if err != nil || u.tunlets.processes == 0 {
			return err
		}
	}
}

// look measures for a while.
func (d *document) look(ctx context.Context, load *load, c calm, length time.Duration) error {
	a := load.analyzer
	before, err := a.usage()
	if err != nil {
		return err
	}
	if err := measure.Pause(ctx, length); err != nil {
		return err
	}
	after, err := a.usage()
	if err != nil {
		return err
	}
	passed := after.at.Sub(before.at).Seconds()
	c.ResidentMB, c.TunletMB, c.TunletProcesses = after.residentMB, after.tunlets.mb, after.tunlets.processes
	c.CPU, c.TunletCPU = (after.cpu-before.cpu)/passed, (after.tunlets.cpu-before.tunlets.cpu)/passed
	c.Simulation = (after.own - before.own) / passed
	c.Ended = load.ended.Load()
	if c.WokenSessions, err = a.woken(ctx); err != nil {
		return err
	}
	d.Calm = append(d.Calm, c)
	return nil
}

func (d *document) printCalm() {
	var table present.Table
	table.Row("sessions in which nothing is wrong", "Analyzer", "CPU", "tunlets", "CPU", "processes", "sessions woken", "simulation CPU")
	for _, c := range d.Calm {
		table.Row(c.title(), present.Number(c.ResidentMB)+" MB", present.Number(c.CPU)+" cores",
			present.Number(c.TunletMB)+" MB", present.Number(c.TunletCPU)+" cores", fmt.Sprint(c.TunletProcesses), fmt.Sprint(c.WokenSessions),
			present.Number(c.Simulation)+" cores")
	}
	fmt.Println()
	table.Print(os.Stdout)
}

func (d *document) calmGoals() (goals []present.Goal) {
	for _, c := range d.Calm {
		goals = append(goals,
			present.Goal{Name: c.title() + ": streams that ended", Value: present.Figure(c.Ended), Limit: 0},
			present.Goal{Name: c.title() + ": memory of all tunlets", Value: present.Figure(c.TunletMB), Unit: "MB", Limit: c.limit()})
		if c.Woken { // else the figure says nothing
			goals = append(goals, present.Goal{
				Name: c.title() + ": sessions", Value: present.Figure(c.WokenSessions), Limit: present.Figure(c.Sessions), AtLeast: true,
			})
		}
	}
	return goals
}

// limit is what all tunlets may take, in MB: none while they sleep.
func (c calm) limit() present.Figure {
	if c.Woken {
		return 120
	}
	return 0
}

func (c calm) title() string {
	if c.Woken {
		return fmt.Sprintf("%d sessions, tunlets woken before", c.Sessions)
	}
	return fmt.Sprintf("%d sessions, tunlets asleep", c.Sessions)
}
