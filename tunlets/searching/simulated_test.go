// SPDX-License-Identifier: Apache-2.0

package searching_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/searching"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// knobRests is how long the Analyzer lets a knob rest after a change that was not kept.
const knobRests = 10 * time.Second

// program is a simulated program with a knob, and the Analyzer that judges its changes.
type program struct {
	*tunlettest.Harness
	t         *testing.T
	processes []*tunlettest.Process
	rate      func(value float64) float64 // calls per second
	bits      func(value float64) uint64

	value, original float64
	speed           func() float64 // a phase of the program; nil: always 1
	distrust        bool           // the Analyzer keeps no change that is predicted
	own             func(p *program)

	noise    *rand.Rand
	seen     int // proposals
	left     int // withdrawals
	id       string
	tried    float64
	since    time.Duration // it was applied
	kept     bool
	restedAt time.Duration
	inForce  map[float64]time.Duration
}

// told says of the program what the tunlet has to know.
func told(more ...string) map[string]string {
	options := map[string]string{"object": "solver", "variable": "block", "progress": "step", "min": "1", "max": "512", "log": "true"}
	for i := 0; i < len(more); i += 2 {
		options[more[i]] = more[i+1]
	}
	return options
}

// solver is a process that computes, whose function step is called so often with the
// knob at a value.
func solver(rate func() float64, bits func() uint64) *tunlettest.Process {
	p := tunlettest.Computing()
	p.Executable = "/home/user/solver"
	p.Hits = func(point *attunev1.MeasurePoint) (float64, uint64) {
		if point.GetFunction().GetSymbols()[0] != "step" || point.GetValueCapture() == "" {
			return 0, 0
		}
		return rate(), bits()
	}
	return p
}

// newProgram starts a program of so many ranks whose knob is at the given value.
func newProgram(t *testing.T, options map[string]string, ranks int, value float64, rate func(float64) float64) *program {
	t.Helper()
	p := &program{
		Harness: tunlettest.New(t, searching.New), t: t, rate: rate, value: value, original: value,
		bits: func(v float64) uint64 { return uint64(int64(v)) }, noise: rand.New(rand.NewPCG(1, 2)),
		restedAt: -knobRests, inForce: map[float64]time.Duration{},
	}
	p.Options = options
	p.StartSession()
	for range ranks {
		p.processes = append(p.processes, p.StartProcess(solver(p.now, func() uint64 { return p.bits(p.value) })))
	}
	return p
}

// now is the rate in the present interval.
func (p *program) now() float64 {
	speed := 1.0
	if p.speed != nil {
		speed = p.speed()
	}
	return speed * p.rate(p.value) * (1 + 0.05*p.noise.NormFloat64())
}

// run lets time pass.
func (p *program) run(d time.Duration) {
	p.t.Helper()
	for end := p.Elapsed() + d; p.Elapsed() < end; {
		if p.own != nil {
			p.own(p)
		}
		p.inForce[p.value] += tunlettest.Period
		p.Round()
		p.judge()
	}
}

// finish lets time pass until the search has ended, and a while more.
func (p *program) finish() {
	p.t.Helper()
	for range 60 {
		result := p.seen > 0 && p.Proposals[p.seen-1].GetPredictedGain() > 0
		p.run(10 * time.Second)
		if len(p.Remarks) > 0 || p.kept && result {
			return
		}
	}
	p.t.Fatalf("no end after %v", p.Elapsed())
}

// checkTrials fails if there is none, or a value was tried twice.
func (p *program) checkTrials() {
	p.t.Helper()
	tried := map[string]bool{}
	for _, one := range p.Proposals {
		value := one.GetChanges()[0].GetAction().GetSetVariable().GetValue().String()
		if one.GetPredictedGain() == 0 && tried[value] {
			p.t.Errorf("%s was tried twice", value)
		}
		tried[value] = true
	}
	if len(tried) == 0 {
		p.t.Error("nothing was tried")
	}
}

// judge does what the Analyzer does: applies what is proposed, compares it in turns,
// keeps and undoes it, and takes back what is withdrawn.
func (p *program) judge() {
	p.t.Helper()
	for ; p.left < len(p.Withdrawals); p.left++ {
		if p.Withdrawals[p.left].GetProposalId() == p.id {
			p.end(attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "withdrawn by the tunlet")
		}
	}
	for ; p.seen < len(p.Proposals); p.seen++ {
		p.apply(p.Proposals[p.seen])
	}
	if p.id == "" || p.kept {
		return
	}
	gain := p.rate(p.tried) / p.rate(p.original)
	predicted := p.Proposals[p.seen-1].GetPredictedGain()
	switch age := p.Elapsed() - p.since; {
	case p.distrust && predicted > 0 && age > 5*time.Second, gain <= 1/3.0 && age > 600*time.Millisecond, age > 20*time.Second && gain < 1.05:
		p.end(attunev1.ProposalState_PROPOSAL_STATE_UNDONE, "no gain")
	case gain >= 2 && age > 2*time.Second, gain >= 1.5 && age > 4*time.Second, age > 20*time.Second:
		p.value, p.kept = p.tried, true
		p.SetState(p.id, attunev1.ProposalState_PROPOSAL_STATE_KEPT, "gain")
	case age > 600*time.Millisecond && int(age/(600*time.Millisecond))%2 == 1:
		p.value = p.original // a turn without it
	default:
		p.value = p.tried
	}
}

// apply makes a change, if the knob is free and has rested.
func (p *program) apply(one tunlettest.Proposed) {
	p.t.Helper()
	if p.id != "" || p.Elapsed() < p.restedAt+knobRests {
		p.t.Errorf("%s comes while %q is in force, or %v after one that was not kept", one.GetId(), p.id, p.Elapsed()-p.restedAt)
		return
	}
	set := one.GetChanges()[0].GetAction().GetSetVariable()
	p.tried = float64(set.GetValue().GetInteger())
	if _, real := set.GetValue().GetKind().(*attunev1.Value_Real); real {
		p.tried = set.GetValue().GetReal()
	}
	p.id, p.value, p.since = one.GetId(), p.tried, p.Elapsed()
	p.SetState(p.id, attunev1.ProposalState_PROPOSAL_STATE_APPLYING, "")
	p.SetState(p.id, attunev1.ProposalState_PROPOSAL_STATE_APPLIED, "")
}

// end takes a change back.
func (p *program) end(state attunev1.ProposalState, reason string) {
	p.t.Helper()
	if !p.kept {
		p.restedAt = p.Elapsed()
	}
	id := p.id
	p.id, p.kept, p.value = "", false, p.original
	p.SetState(id, state, reason)
}

// remarked says whether there is a remark with the text.
func (p *program) remarked(text string) bool {
	for _, r := range p.Remarks {
		if strings.Contains(r.GetText(), text) {
			return true
		}
	}
	return false
}

// peak is a rate that is greatest at a value, over decades.
func peak(at, most float64) func(float64) float64 {
	return func(v float64) float64 {
		d := math.Log(v / at)
		return 100 + most*math.Exp(-d*d/2)
	}
}
