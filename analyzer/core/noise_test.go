// SPDX-License-Identifier: Apache-2.0

package core

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// application is a simulated one: its objective has a noisy value every 50 ms,
// and a change multiplies it by effect.
type application struct {
	rng    *rand.Rand
	effect float64
	noise  float64 // standard deviation, relative
	memory float64 // correlation of one sample with the one before it
	last   float64
	idle   float64 // share of the samples after the change that saw no progress; the others saw all
	inGap  bool
}

// sample returns the next value of the objective.
func (a *application) sample(changed bool) float64 {
	a.last = a.memory*a.last + math.Sqrt(1-a.memory*a.memory)*a.rng.NormFloat64()
	value := 100 * math.Exp(a.noise*a.last)
	if changed {
		value *= a.effect
	}
	if changed && a.idle > 0 {
		if a.rng.Float64() < 0.5 { // gaps and bursts last two samples
			a.inGap = a.rng.Float64() < a.idle
		}
		if value /= 1 - a.idle; a.inGap {
			value = 0
		}
	}
	return value
}

// decide runs one proposal through a core, and reports whether it was kept.
func (a *application) decide() bool {
	c := New(Config{Mode: ModeTune})
	c.Step(0, TunletReady{Info: &attunev1.DescribeResponse{Name: "t", Knobs: []*attunev1.Knob{{Name: "k"}}}})
	c.Step(0, ProcessStarted{Process: 1, Executable: "/bin/app"})
	changed := false
	for i := range 200 {
		now := time.Duration(i+1) * 50 * time.Millisecond
		cmds := c.Step(now, Sample{Tunlet: "t", Scope: "app", Value: a.sample(changed), At: now})
		if i == 9 {
			cmds = append(cmds, c.Step(now, Propose{Tunlet: "t", Proposal: proposalOf("p", "k")})...)
		}
		for len(cmds) > 0 {
			cmd := cmds[0]
			cmds = append(cmds[1:], answer(c, now, cmd, &changed)...)
		}
		if views := c.Proposals(); len(views) == 1 && views[0].DoneAt > 0 {
			return views[0].State == StateKept
		}
	}
	return false
}

// answer plays the controller and a tunlet without an opinion.
func answer(c *Core, now time.Duration, cmd Command, changed *bool) []Command {
	switch cmd := cmd.(type) {
	case Apply:
		*changed = true
		c.Step(now, Result{At: now, Result: resultOf(cmd.Changes[0].GetId(), attunev1.Outcome_OUTCOME_APPLIED)})
		return c.Step(now, RequestDone{Request: cmd.Request})
	case Undo:
		*changed = false
		c.Step(now, Result{At: now, Result: resultOf(cmd.Changes[0], attunev1.Outcome_OUTCOME_UNDONE)})
		return c.Step(now, RequestDone{Request: cmd.Request})
	case AskEvaluate:
		return c.Step(now, Verdict{Tunlet: cmd.Tunlet, Proposal: cmd.Request.GetProposalId()})
	}
	return nil
}

func proposalOf(id, knob string) *attunev1.Proposal {
	return &attunev1.Proposal{Id: id, Scope: "app", Changes: []*attunev1.Change{{
		Knob: knob, Process: 1,
		Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: knob}}},
	}}}
}

func resultOf(id string, outcome attunev1.Outcome) *attunev1.ActionResult {
	return &attunev1.ActionResult{ChangeId: id, Outcome: outcome}
}

// TestNoisyApplications measures, over many simulated runs, how often a change
// is kept: a harmful one almost never, a good one almost always.
func TestNoisyApplications(t *testing.T) {
	const runs = 1000
	tests := []struct {
		name                        string
		effect, noise, memory, idle float64
		least, most                 float64 // share of runs that keep the change
	}{
		{name: "half as fast", effect: 0.5, noise: 0.1, most: 0},
		{name: "10 % slower", effect: 0.9, noise: 0.05, most: 0},
		{name: "10 % slower, much noise", effect: 0.9, noise: 0.3, most: 0.02},
		{name: "10 % slower, noise with memory", effect: 0.9, noise: 0.1, memory: 0.5, most: 0.02},
		{name: "nothing", effect: 1, noise: 0.02, most: 0},
		{name: "nothing, noise", effect: 1, noise: 0.1, most: 0.04},
		{name: "nothing, much noise", effect: 1, noise: 0.5, most: 0.08},
		{name: "below the margin", effect: 1.02, noise: 0.02, most: 0.02},
		{name: "30 % faster, noise", effect: 1.3, noise: 0.1, least: 0.98, most: 1},
		{name: "twice as fast, much noise", effect: 2, noise: 0.3, least: 0.95, most: 1},
		{name: "ten times as fast", effect: 10, noise: 0.5, least: 0.999, most: 1},
		{name: "ten times as fast, in bursts", effect: 10, noise: 0.5, idle: 0.6, least: 0.7, most: 1},
		{name: "a third as fast, in bursts", effect: 0.33, noise: 0.1, idle: 0.6, most: 0.02},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			kept := 0
			for run := range runs {
				a := &application{
					rng:    rand.New(rand.NewPCG(uint64(run), 42)),
					effect: tt.effect, noise: tt.noise, memory: tt.memory, idle: tt.idle,
				}
				if a.decide() {
					kept++
				}
			}
			share := float64(kept) / runs
			t.Logf("kept %.2f %%", 100*share)
			if share < tt.least || share > tt.most {
				t.Errorf("kept in %.4f of the runs, want %v to %v", share, tt.least, tt.most)
			}
		})
	}
}
