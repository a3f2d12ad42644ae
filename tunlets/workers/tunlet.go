// SPDX-License-Identifier: Apache-2.0

package workers

import (
	"fmt"
	"math"

	"github.com/attune-hpc/attune/tunlets/kit/masterworker"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "workers"

// The goals.
const (
	// GoalTime is the shortest round.
	GoalTime = "time"
	// GoalIndex is the least of Morajko's index: nearly as short, with workers
	// that are worth their CPUs.
	GoalIndex = "index"
)

const (
	knob = "program.workers"
	// minGain is the least predicted gain worth a try.
	minGain = 1.1
)

// Tunlet chooses the number of workers. Made by New.
type Tunlet struct {
	masterworker.Tunlet
	options options
}

// New makes the tunlet.
func New() sdk.Tunlet { return &Tunlet{} }

// Describe says what the tunlet is.
func (*Tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: Name, Version: "1",
		Summary: "chooses the number of workers of a master/worker program",
		Objective: sdk.Objective{
			Name: "rounds_per_second", Unit: "1/s",
			Description: "rounds of the master per second; a round is the same work however many workers share it",
		},
		Knobs: []sdk.Knob{{
			Name: knob, Action: sdk.SetVariable("", "", 0, sdk.Value{}), Description: "workers that the master gives work to: the program's own variable, named by an option", Min: sdk.Int(1), Max: sdk.Int(maxWorkers),
		}},
		MinGain: 0.05, Wake: masterworker.Wake(),
		Options: sdk.OptionsOf[options](),
	}
}

// maxWorkers bounds what can be asked for, as the options do.
const maxWorkers = 65536

// options are those of the tunlet; see [sdk.OptionsOf].
type options struct {
	Variable string `option:"variable" required:"true" doc:"global integer variable with the number of workers, which the master reads at each round"`
	masterworker.Program

	Size  int64  `option:"size" default:"4" choices:"4,8" doc:"bytes of the variable"`
	Least int64  `option:"least" default:"1" min:"1" max:"65536" doc:"least number of workers that the program can do with"`
	Most  int64  `option:"most" required:"true" min:"1" max:"65536" doc:"greatest number of workers that the program has"`
	Goal  string `option:"goal" default:"time" choices:"time,index" doc:"time: the shortest round; index: the least of n·T²/work, which spends no worker that brings little"`
}

// Configure takes the options, which are settled.
func (t *Tunlet) Configure(given map[string]string) (err error) {
	if t.options, err = sdk.ReadOptions[options](given); err != nil {
		return err
	}
	if o := t.options; o.Most != 0 && o.Most < o.Least {
		return fmt.Errorf("options least and most: %d to %d is no range", o.Least, o.Most)
	}
	t.Setup(masterworker.Spec{
		Name: Name, Knob: knob, Program: t.options.Program, Variable: t.options.Variable, Bytes: uint32(t.options.Size), Plan: t.Plan, MinGain: minGain,
	})
	return nil
}

// Plan fits the model to what was measured, and looks for the best number.
//
// Own derivation: what the master does for a worker is the time of its dispatches
// in a round by the number of workers, which holds whether it is the latency or
// the volume of a message that counts; Fixed is what the model does not explain
// of the round as it is. What dispatches wait for a CPU stays in PerWorker: it is
// the workers that they wait for, and fewer of them make it less.
func (t *Tunlet) Plan(m masterworker.Measured) (masterworker.Plan, bool) {
	now := math.Round(m.Value)
	if now < 1 || now > maxWorkers || t.options.Most < 1 {
		return masterworker.Plan{}, false
	}
	c := fit(m, now)
	if c.Work <= 0 {
		return masterworker.Plan{}, false
	}
	f := c.Time
	if t.options.Goal == GoalIndex {
		f = c.Index
	}
	n := Scan(int(t.options.Least), int(t.options.Most), f)
	plan := masterworker.Plan{
		Value: sdk.Int(int64(n)), Gain: c.Time(now) / c.Time(float64(n)),
		Reason: fmt.Sprintf("%.0f workers on %.0f CPUs: a round takes %.2f ms, of which %.2f ms are work and %.3f ms the master's for each worker; with %d it would take %.2f ms",
			now, m.CPUs, 1e3*m.Period(), 1e3*c.Work, 1e3*c.PerWorker, n, 1e3*c.Time(float64(n))),
	}
	return plan, n != int(now)
}

func fit(m masterworker.Measured, now float64) Cost {
	c := Cost{
		PerWorker: m.DispatchSeconds / m.Rounds / now,
		Work:      m.TaskSeconds * m.Share(now) / m.Rounds, CPUs: m.CPUs,
	}
	c.Fixed = max(0, m.Period()-c.Time(now))
	return c
}
