// SPDX-License-Identifier: Apache-2.0

package factoring

import (
	"fmt"
	"math"

	"github.com/attune-hpc/attune/tunlets/kit/masterworker"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// Name of the tunlet.
const Name = "factoring"

// The kinds of variables.
const (
	// KindFactor is a double: the part of what is left that a batch is.
	KindFactor = "factor"
	// KindChunk is an integer: the items of a piece.
	KindChunk = "chunk"
)

const (
	knob = "program.factor"
	// minGain is the least predicted gain worth a try.
	minGain = 1.1
)

// Tunlet chooses the size of pieces. Made by New.
type Tunlet struct {
	masterworker.Tunlet
	kind  string
	items items
}

// New makes the tunlet.
func New() sdk.Tunlet { return &Tunlet{items: items{}} }

// Describe says what the tunlet is.
func (*Tunlet) Describe() sdk.Description {
	return sdk.Description{
		Name: Name, Version: "1",
		Summary: "chooses how much work a master hands out at a time",
		Objective: sdk.Objective{
			Name: "rounds_per_second", Unit: "1/s",
			Description: "rounds of the master per second; a round is the same work in whatever pieces it is handed out",
		},
		Knobs: []sdk.Knob{{
			Name: knob, Action: sdk.SetVariable("", "", 0, sdk.Value{}), Description: "the program's own variable, named by an option: the part of what is left that is handed out next, or the items of a piece",
		}},
		MinGain: 0.05, Wake: masterworker.Wake(),
		Options: sdk.OptionsOf[options](),
	}
}

// options are those of the tunlet; see [sdk.OptionsOf].
type options struct {
	Variable string `option:"variable" required:"true" doc:"global variable with the factor or the size of a piece, which is read at each round"`
	masterworker.Program

	Kind string `option:"kind" default:"factor" choices:"factor,chunk" doc:"factor: a double, the part of what is left that a batch is; chunk: an integer, the items of a piece"`
	Size int64  `option:"size" default:"4" choices:"4,8" doc:"bytes of the variable of a chunk"`
}

// Configure takes the options, which are settled.
func (t *Tunlet) Configure(given map[string]string) error {
	o, err := sdk.ReadOptions[options](given)
	if err != nil {
		return err
	}
	t.kind = o.Kind
	spec := masterworker.Spec{
		Name: Name, Knob: knob, Program: o.Program, Variable: o.Variable, Bytes: uint32(o.Size), Plan: t.Plan, MinGain: minGain,
		Worker: t.items.add, Restarted: func() { clear(t.items) },
	}
	if t.kind != KindChunk {
		spec.Bytes, spec.Real = 8, true
	}
	t.Setup(spec)
	return nil
}

// Plan simulates rounds of the items that were measured, in pieces of different
// sizes. Without knowing the variable it could not tell what they are now. What the simulation does not explain of a round as it is stays.
func (t *Tunlet) Plan(m masterworker.Measured) (masterworker.Plan, bool) {
	r := Round{
		Items: int(math.Round(m.Tasks / m.Rounds)), HandOut: m.DispatchSeconds / m.Dispatches, Times: t.items.times(),
	}
	if m.Value <= 0 || len(r.Times) < 2 || r.Items < len(r.Times) || r.Items > maxItems {
		return masterworker.Plan{}, false
	}
	mean, deviation := moments(r.Times)
	best, seconds := t.best(r, mean, deviation)
	now := t.now(r, m.Value)
	rest := max(0, m.Period()-now)
	plan := masterworker.Plan{
		Value: t.value(best), Gain: (now + rest) / (seconds + rest),
		Reason: fmt.Sprintf("%d items of %.3f ± %.3f ms for %d workers, of which the slowest needs %.1f times as long as the fastest; a hand-out takes %.3f ms; a round takes %.2f ms, with a %s of %.3g instead of %.3g it would %.2f ms",
			r.Items, 1e3*mean, 1e3*deviation, len(r.Times), slowness(r.Times), 1e3*r.HandOut, 1e3*m.Period(), t.kind, best, m.Value, 1e3*(seconds+rest)),
	}
	return plan, best != m.Value
}

// maxItems bounds what a simulation takes.
const maxItems = 1 << 17

// best is the value with the shortest round.
func (t *Tunlet) best(r Round, mean, deviation float64) (value, seconds float64) {
	if t.kind == KindChunk {
		size, seconds := r.BestFixed()
		return float64(size), seconds
	}
	return r.BestFactor(factors(mean, deviation, len(r.Times)))
}

// now is the simulated round with the variable as it is.
func (t *Tunlet) now(r Round, value float64) float64 {
	if t.kind == KindChunk {
		return r.Fixed(int(min(maxItems, max(1, value))))
	}
	return r.Factor(min(1, max(0, value)))
}

func (t *Tunlet) value(v float64) sdk.Value {
	if t.kind == KindChunk {
		return sdk.Int(int64(v))
	}
	return sdk.Real(v)
}

// slowness is how many times as long the slowest worker needs as the fastest.
func slowness(times [][]float64) float64 {
	least, most := math.Inf(1), 0.0
	for _, t := range times {
		mean, _ := moments([][]float64{t})
		least, most = min(least, mean), max(most, mean)
	}
	return most / max(least, 1e-12)
}
