// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// bag is simulated processes of one program, each with a speed and an objective of
// its own, for each of which the same change is proposed.
type bag struct {
	processes []*application
	program   string // see ProcessStarted
	changes   map[string]*application
	// windows counts the ticks in which a change was in force, over all processes,
	// trying those in which one was not decided about.
	windows, trying int
}

// bagSize is how many processes a bag has.
const bagSize = 8

// run runs all processes at one time, has the change proposed in one after the
// other, and returns in how many it was kept at the end.
func (b *bag) run(of application, seed uint64) (kept int) {
	c := New(Config{Mode: ModeTune})
	c.Step(0, TunletReady{Info: &attunev1.DescribeResponse{Name: "t", Knobs: []*attunev1.Knob{{Name: "k"}}}})
	for i := range bagSize {
		a := of
		a.rng = rand.New(rand.NewPCG(seed, uint64(i)))
		a.speed = a.shape.make(a.rng)
		b.processes = append(b.processes, &a)
		c.Step(0, ProcessStarted{Process: uint64(i + 1), Executable: "/bin/app", Program: b.program})
	}
	for tick := 1; time.Duration(tick)*simTick <= of.length; tick++ {
		now := time.Duration(tick) * simTick
		for i, a := range b.processes {
			scope := fmt.Sprint("p", i+1)
			b.obey(c, now, c.Step(now, Sample{Tunlet: "t", Scope: scope, Value: a.sample(), At: now}))
			if tick == 10+2*i {
				p := proposalOf(scope, "k", of.predicted)
				p.Scope, p.Changes[0].Process = scope, uint64(i+1)
				b.obey(c, now, c.Step(now, Propose{Tunlet: "t", Proposal: p}))
			}
		}
		kept = b.count(c.Proposals())
	}
	return kept
}

// count notes how things stand after a tick, and returns how many changes stay.
func (b *bag) count(views []*attunev1.RecordedProposal) (kept int) {
	for _, a := range b.processes {
		if a.changed {
			b.windows++
		}
	}
	for _, v := range views {
		switch v.GetState() {
		case "kept":
			kept++
		case "applying", "judging", "undoing":
			b.trying++
		}
	}
	return kept
}

// obey plays the controllers, and a tunlet without an opinion.
func (b *bag) obey(c *Core, now time.Duration, cmds []Command) {
	for ; len(cmds) > 0; cmds = cmds[1:] {
		a := &application{}
		switch cmd := cmds[0].(type) {
		case Apply:
			a = b.processes[cmd.Changes[0].GetProcess()-1]
			b.changes[cmd.Changes[0].GetId()] = a
		case Undo:
			a = b.changes[cmd.Changes[0]]
		}
		cmds = append(cmds, a.answer(c, now, cmds[0])...)
	}
}

// account is what became of many bags.
type account struct{ windows, trying, kept, all int }

// add runs bags of an application.
func (sum *account) add(of application, program string, runs int) {
	for run := range runs {
		b := bag{program: program, changes: map[string]*application{}}
		sum.kept += b.run(of, uint64(run))
		sum.windows += b.windows
		sum.trying += b.trying
		sum.all += bagSize
	}
}

// TestSiblings compares bags whose processes are known to be of one program with
// those in which each is tried by itself. A harmful change is tried for a fraction
// of the time, and is kept no more often. A useful one is kept as often; the others
// wait while it is tried in the first. Note 0040 has the table of a longer run.
func TestSiblings(t *testing.T) {
	runs := max(1, *simRuns/12)
	var harmful, useful, harmfulAlone, usefulAlone account
	for _, s := range shapes {
		of := application{shape: s, predicted: 1.5, length: 40 * time.Second}
		for _, of.effect = range []float64{0.3, 0.7, 0.9} {
			harmful.add(of, "app", runs)
			harmfulAlone.add(of, "", runs)
		}
		if s.events > 0 {
			continue // a useful change takes most of these 40 s to prove
		}
		of.effect = 1.5
		useful.add(of, "app", runs)
		usefulAlone.add(of, "", runs)
	}
	t.Logf("harmful: %+v, each tried by itself %+v", harmful, harmfulAlone)
	t.Logf("useful: %+v, each tried by itself %+v", useful, usefulAlone)
	if 5*harmful.windows > harmfulAlone.windows || 5*harmful.trying > harmfulAlone.trying {
		t.Error("siblings suffer from harmful changes nearly as if each were tried by itself")
	}
	if harmful.kept > harmfulAlone.kept && 100*harmful.kept > harmful.all {
		t.Error("siblings keep harmful changes")
	}
	if 3*useful.trying > usefulAlone.trying || 10*useful.windows < 8*usefulAlone.windows || 10*useful.kept < 9*usefulAlone.kept {
		t.Error("siblings have less of useful changes than if each were tried by itself")
	}
}

// TestManyScopes has a change proposed for one process of many, each of which has an objective of
// its own and is sampled in its turn.
func TestManyScopes(t *testing.T) {
	const processes = 1100
	c := New(Config{Mode: ModeTune})
	c.Step(0, TunletReady{Info: &attunev1.DescribeResponse{Name: "t", Knobs: []*attunev1.Knob{{Name: "k"}}}})
	c.Step(0, ProcessStarted{Process: 1, Executable: "/bin/app"})
	var now time.Duration
	for range 10 {
		now += simTick
		for n := range processes {
			c.Step(now, Sample{Tunlet: "t", Scope: fmt.Sprint("p", n+1), Value: 1, At: now})
		}
	}
	p := proposalOf("p1", "k", 2)
	p.Scope, p.Changes[0].Process = "p1", 1
	c.Step(now, Propose{Tunlet: "t", Proposal: p})
	if v := c.Proposals()[0]; v.GetState() != "applying" {
		t.Errorf("the proposal is %v, want applying at once: %s", v.GetState(), v.GetReason())
	}
}
