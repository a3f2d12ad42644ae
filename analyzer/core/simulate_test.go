// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// simTick is how often a simulated application is sampled.
const simTick = 50 * time.Millisecond

// noise is how the speed of a simulated application varies by itself: each call
// returns the speed of the next tick, as a factor.
type noise func() float64

// shape makes the noise of one run.
type shape struct {
	name string
	make func(rng *rand.Rand) noise
	lump time.Duration // progress shows only this often; 0: at once
	// every is how far between samples are; 0: a tick.
	every time.Duration
	// work is how long a piece of work takes without the change, each of which ends with a sample; 0: every.
	work time.Duration
	// batch is how many times as large a piece of work is with the change; 0: as large.
	batch float64
	// group is how many samples each piece ends with, a few ticks from one to the next; 0: one.
	group int
	// events is how many of them there are in a second, at random, in clusters of that
	// many on average; 0: progress is a number.
	events, cluster float64
	// mostUndone is how many useful changes may be undone, in percent; 0: 5.
	mostUndone int
	// leastWithin is how many intervals have to have the true gain, in percent; 0: 85, which
	// are 90 of more runs. Less where what the application does by itself takes as long as a
	// trial.
	leastWithin int
}

// shapes are the applications that the rules are tried on. Magnitudes are those
// of programs on shared machines; note 0030 says where they come from.
var shapes = []shape{
	{name: "white", make: func(rng *rand.Rand) noise { return white(rng, 0.1) }},
	{name: "much white", make: func(rng *rand.Rand) noise { return white(rng, 0.2) }},
	{name: "autocorrelated", make: func(rng *rand.Rand) noise { return autocorrelated(rng, 0.1, 0.8) }},
	{name: "drifting up", make: func(rng *rand.Rand) noise { return drifting(rng, 0.04) }},
	{name: "drifting down", make: func(rng *rand.Rand) noise { return drifting(rng, -0.04) }},
	{name: "wandering", make: wandering},
	{name: "bursty", make: func(rng *rand.Rand) noise { return white(rng, 0.05) }, lump: 170 * time.Millisecond},
	{name: "bimodal", make: func(rng *rand.Rand) noise { return phases(rng, 2, 1500*time.Millisecond) }},
	{name: "bimodal, far apart", leastWithin: 80, make: func(rng *rand.Rand) noise { return phases(rng, 4, 2*time.Second) }},
	{name: "bimodal, flickering", make: func(rng *rand.Rand) noise { return phases(rng, 2, 50*time.Millisecond) }},
	// Two turns of a trial last about as long as a period: the worst case.
	{name: "periodic", mostUndone: 12, leastWithin: 70, make: func(rng *rand.Rand) noise { return periodic(rng, 0.3, 1700*time.Millisecond) }},
	{name: "periodic, any period", leastWithin: 80, make: func(rng *rand.Rand) noise {
		return periodic(rng, 0.3, time.Duration(0.2e9*math.Exp(rng.Float64()*math.Log(30))))
	}},
	{name: "rare outliers", make: outliers},
	{name: "rare, 1 a second", events: 1, make: even},
	{name: "rare, 4 a second", events: 4, make: even},
	{name: "rare, 10 a second", events: 10, make: even},
	{name: "rare, in clusters", events: 8, cluster: 4, make: even},
	{name: "rare, drifting up", events: 8, make: func(rng *rand.Rand) noise { return drifting(rng, 0.04) }},
	{name: "rare, drifting down", events: 8, make: func(rng *rand.Rand) noise { return drifting(rng, -0.04) }},
	{name: "rare, two speeds", events: 8, make: func(rng *rand.Rand) noise { return phases(rng, 4, 2*time.Second) }},
	{name: "rare, periodic", events: 8, make: func(rng *rand.Rand) noise { return periodic(rng, 0.9, 1700*time.Millisecond) }},
}

// shows reports whether an effect is large enough to be seen in the events of a minute, or in
// samples that are far between.
func (s shape) shows(effect float64) bool {
	return (s.events == 0 || s.events >= 4 && s.cluster == 0) && effect >= 2.5
}

// apart is how far between samples are on average, of a change without effect.
func (s shape) apart() time.Duration {
	return max(s.every, time.Duration(float64(s.work)*max(1, s.batch))/time.Duration(max(1, s.group)))
}

// even is no noise.
func even(*rand.Rand) noise { return func() float64 { return 1 } }

// white is noise without memory, of the given relative standard deviation.
func white(rng *rand.Rand, deviation float64) noise {
	return func() float64 { return math.Exp(deviation * rng.NormFloat64()) }
}

// autocorrelated is noise whose correlation from one tick to the next is memory.
func autocorrelated(rng *rand.Rand, deviation, memory float64) noise {
	last := rng.NormFloat64()
	return func() float64 {
		last = memory*last + math.Sqrt(1-memory*memory)*rng.NormFloat64()
		return math.Exp(deviation * last)
	}
}

// drifting becomes faster by rate per second, for half a minute.
func drifting(rng *rand.Rand, rate float64) noise {
	around, ticks := white(rng, 0.05), 0
	return func() float64 {
		ticks++
		return math.Exp(rate*min(30, float64(ticks)*simTick.Seconds())) * around()
	}
}

// wandering is a random walk: 5 % in a second, 20 % in 16.
func wandering(rng *rand.Rand) noise {
	around, level := white(rng, 0.03), 0.0
	step := 0.05 * math.Sqrt(simTick.Seconds())
	return func() float64 {
		level += step * rng.NormFloat64()
		return math.Exp(level) * around()
	}
}

// phases alternates between two speeds; each phase lasts that long on average.
func phases(rng *rand.Rand, ratio float64, length time.Duration) noise {
	around, fast := white(rng, 0.05), rng.IntN(2) == 0
	change := min(0.5, simTick.Seconds()/length.Seconds())
	return func() float64 {
		if rng.Float64() < change {
			fast = !fast
		}
		if fast {
			return ratio * around()
		}
		return around()
	}
}

// periodic swings by the given part of its speed.
func periodic(rng *rand.Rand, part float64, period time.Duration) noise {
	around, at := white(rng, 0.05), 2*math.Pi*rng.Float64()
	return func() float64 {
		at += 2 * math.Pi * simTick.Seconds() / period.Seconds()
		return (1 + part*math.Sin(at)) * around()
	}
}

// outliers stands still in one tick of twenty, and is far too fast in another.
func outliers(rng *rand.Rand) noise {
	around := white(rng, 0.05)
	return func() float64 {
		switch rng.IntN(20) {
		case 0:
			return 0
		case 1:
			return 5 * around()
		}
		return around()
	}
}

// application is a simulated program: what a change does to it, and what the
// tunlet that proposes the change believes.
type application struct {
	shape     shape
	effect    float64 // speed with the change, as a factor
	predicted float64 // by the tunlet; 0: no prediction
	length    time.Duration
	apart     bool // see Config.Apart
	// owned: the owner's objective judges, and the tunlet's says the contrary.
	owned bool

	rng     *rand.Rand
	speed   noise
	pending float64   // progress of a lump that is not complete
	since   float64   // and of a sample
	ticks   int       // of a piece of work
	group   []float64 // samples of the latest piece that are still to come
	changed bool
}

// outcome is how a run ended.
type outcome struct {
	kept, undone bool
	useless      bool // undone, and found to gain nothing
	last         *attunev1.RecordedProposal
	decided      time.Duration // since the proposal; 0: never
}

func (a *application) config() Config {
	cfg := Config{Mode: ModeTune, Apart: a.apart}
	if a.owned {
		cfg.Objective = &attunev1.Objective{Name: "own"}
	}
	return cfg
}

// measure lets a tick pass, and hands the core the samples that there are at its end.
// Of those far between the core hears of ticks besides, which it would miss if there were fewer (see stop).
func (a *application) measure(c *Core, now time.Duration) (cmds []Command, stepped bool) {
	value, known := a.value(now)
	if !known {
		if now%(longestBeat/2) != 0 {
			return nil, false
		}
		return c.Step(now, Tick{}), true
	}
	if !a.owned {
		return c.Step(now, Sample{Tunlet: "t", Scope: "app", Value: value, At: now}), true
	}
	contrary := 100.0
	if a.changed {
		contrary /= a.effect
	}
	cmds = c.Step(now, Sample{Tunlet: "t", Scope: "app", Value: contrary, At: now})
	return append(cmds, c.Step(now, Measured{Value: value, At: now})...), true
}

// value lets a tick pass, and returns the sample that there is at its end.
func (a *application) value(now time.Duration) (value float64, known bool) {
	a.since += a.sample()
	a.ticks++
	if a.shape.work > 0 {
		known = a.since*simTick.Seconds() >= 100*a.shape.work.Seconds()*a.batch()
	} else {
		known = int(now/simTick)%max(1, int(a.shape.every/simTick)) == 0
	}
	if known {
		value = a.since / float64(a.ticks)
		a.since, a.ticks = 0, 0
		a.group = slices.Repeat([]float64{value}, max(0, a.shape.group-1))
		return value, true
	}
	if len(a.group) > 0 && a.ticks%2 == 0 {
		value, a.group = a.group[0]*math.Exp(0.02*a.rng.NormFloat64()), a.group[1:]
		return value, true
	}
	return 0, false
}

// batch returns how many times as large as usual a piece of work is.
func (a *application) batch() float64 {
	if a.changed {
		return cmp.Or(a.shape.batch, 1)
	}
	return 1
}

// sample returns the objective of the next tick: units per second, 100 of them
// without noise and change.
func (a *application) sample() float64 {
	rate := 100 * a.speed()
	if a.changed {
		rate *= a.effect
	}
	switch {
	case a.shape.events > 0:
		return a.happen(rate/100*a.shape.events*simTick.Seconds()) / simTick.Seconds()
	case a.shape.lump == 0:
		return rate
	}
	a.pending += rate * simTick.Seconds()
	lump := 100 * a.shape.lump.Seconds()
	shown := math.Floor(a.pending/lump) * lump
	a.pending -= shown
	return shown / simTick.Seconds()
}

// happen returns how many events there are in a tick, of which that many are expected.
func (a *application) happen(expected float64) (events float64) {
	cluster := max(1, a.shape.cluster)
	for at := a.rng.ExpFloat64(); at < expected/cluster; at += a.rng.ExpFloat64() {
		events++
		for a.rng.Float64() < 1-1/cluster {
			events++
		}
	}
	return events
}

// run has one change proposed after half a second, or when the pace of the samples is known, and
// returns what became of it by the end.
func (a *application) run(seed uint64) outcome {
	a.rng = rand.New(rand.NewPCG(seed, 42))
	a.speed = a.shape.make(a.rng)
	c := New(a.config())
	c.Step(0, TunletReady{Info: &attunev1.DescribeResponse{Name: "t", Knobs: []*attunev1.Knob{{Name: "k"}}}})
	c.Step(0, ProcessStarted{Process: 1, Executable: "/bin/app"})
	known := 16 * a.shape.work
	proposed := known + 10*simTick
	if a.apart {
		proposed = 3 * time.Second
	}
	var o outcome
	for now := simTick; now <= known+a.length; now += simTick {
		cmds, stepped := a.measure(c, now)
		if now == proposed {
			cmds = append(cmds, c.Step(now, Propose{Tunlet: "t", Proposal: proposalOf("p", "k", a.predicted)})...)
		}
		for len(cmds) > 0 {
			cmd := cmds[0]
			cmds = append(cmds[1:], a.answer(c, now, cmd)...)
		}
		if !stepped && now != proposed {
			continue
		}
		views := c.Proposals()
		if len(views) == 0 {
			continue
		}
		v := views[0]
		o.last, o.useless = v, v.GetUseless()
		o.kept, o.undone = (o.kept || v.GetState() == "kept") && v.GetState() != "undone", v.GetState() == "undone"
		if o.decided == 0 && (o.kept || o.undone) {
			o.decided = now - proposed
		}
		if o.undone {
			break
		}
	}
	return o
}

// answer plays the controller and a tunlet without an opinion.
func (a *application) answer(c *Core, now time.Duration, cmd Command) []Command {
	switch cmd := cmd.(type) {
	case Apply:
		a.changed = true
		c.Step(now, Result{At: now, Result: resultOf(cmd.Changes[0].GetId(), attunev1.Outcome_OUTCOME_APPLIED)})
		return c.Step(now, RequestDone{Request: cmd.Request})
	case Undo:
		a.changed = false
		c.Step(now, Result{At: now, Result: resultOf(cmd.Changes[0], attunev1.Outcome_OUTCOME_UNDONE)})
		return c.Step(now, RequestDone{Request: cmd.Request})
	case AskEvaluate:
		return c.Step(now, Verdict{Tunlet: cmd.Tunlet, Proposal: cmd.Request.GetProposalId()})
	}
	return nil
}

func proposalOf(id, knob string, predicted float64) *attunev1.Proposal {
	return &attunev1.Proposal{Id: id, Scope: "app", PredictedGain: predicted, Changes: []*attunev1.Change{{
		Knob: knob, Process: 1,
		Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: knob}}},
	}}}
}

func resultOf(id string, outcome attunev1.Outcome) *attunev1.ActionResult {
	return &attunev1.ActionResult{ChangeId: id, Outcome: outcome}
}
