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

// The options beside those of package masterworker.
const (
	OptionLeast = "least"
	OptionMost  = "most"
	OptionSize  = "size"
	OptionGoal  = "goal"
)

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
	least, most int
	goal        string
}

var (
	_ sdk.Configurer           = (*Tunlet)(nil)
	_ sdk.ProcessStartObserver = (*Tunlet)(nil)
	_ sdk.ProcessEndObserver   = (*Tunlet)(nil)
	_ sdk.SampleHandler        = (*Tunlet)(nil)
	_ sdk.AggregateHandler     = (*Tunlet)(nil)
	_ sdk.PointObserver        = (*Tunlet)(nil)
	_ sdk.Evaluator            = (*Tunlet)(nil)
	_ sdk.ProposalObserver     = (*Tunlet)(nil)
	_ masterworker.Planner     = (*Tunlet)(nil)
)

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
		MinGain: 0.05, Wake: masterworker.Wake(), Options: options(),
	}
}

// maxWorkers bounds what can be asked for.
const maxWorkers = 65536

func options() []sdk.Option {
	bound := fmt.Sprint(maxWorkers)
	return append(masterworker.Options("global integer variable with the number of workers, which the master reads at each round"),
		sdk.Option{Name: OptionSize, Type: sdk.IntegerOption, Default: "4", Choices: []string{"4", "8"}, Description: "bytes of the variable"},
		sdk.Option{Name: OptionLeast, Type: sdk.IntegerOption, Default: "1", Min: "1", Max: bound, Description: "least number of workers that the program can do with"},
		sdk.Option{Name: OptionMost, Type: sdk.IntegerOption, Min: "1", Max: bound, Required: true, Description: "greatest number of workers that the program has"},
		sdk.Option{
			Name: OptionGoal, Type: sdk.TextOption, Default: GoalTime, Choices: []string{GoalTime, GoalIndex},
			Description: "time: the shortest round; index: the least of n·T²/work, which spends no worker that brings little",
		},
	)
}

// Configure takes the options, which are settled.
func (t *Tunlet) Configure(options map[string]string) error {
	least, errLeast := sdk.ParseInteger(options[OptionLeast])
	most, errMost := sdk.ParseInteger(options[OptionMost])
	if options[OptionMost] != "" && (errLeast != nil || errMost != nil || most < least) {
		return fmt.Errorf("options %s and %s: %q to %q is no range", OptionLeast, OptionMost, options[OptionLeast], options[OptionMost])
	}
	t.least, t.most, t.goal = int(least), int(most), options[OptionGoal]
	size := uint32(4)
	if options[OptionSize] == "8" {
		size = 8
	}
	t.Setup(masterworker.Spec{Name: Name, Knob: knob, Bytes: size, MinGain: minGain}, options, t)
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
	if now < 1 || now > maxWorkers || t.most < 1 {
		return masterworker.Plan{}, false
	}
	c := fit(m, now)
	if c.Work <= 0 {
		return masterworker.Plan{}, false
	}
	f := c.Time
	if t.goal == GoalIndex {
		f = c.Index
	}
	n := Scan(t.least, t.most, f)
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
