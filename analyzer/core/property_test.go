// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/core/trial"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// world is the simplest account of what a core has done: which changes are in
// force, by what was asked of the controller and answered. It knows no states.
type world struct {
	t       *testing.T
	rng     *rand.Rand
	core    *Core
	now     time.Duration
	inForce map[string]*attunev1.Change
	stuck   map[string]bool // could not be undone once
	asked   []Command       // not answered yet
	next    int
}

const (
	worldTunlets   = 3
	worldProcesses = 4
)

// TestRandomEvents drives cores with random events and checks what must hold
// whatever happens: knobs have one owner, no two experiments touch a process at
// one time, nothing is asked that makes no sense, and when the session has ended
// nothing is in force.
func TestRandomEvents(t *testing.T) {
	for seed := range uint64(300) {
		w := &world{
			t: t, rng: rand.New(rand.NewPCG(seed, 7)), core: New(Config{Mode: ModeTune}),
			inForce: map[string]*attunev1.Change{}, stuck: map[string]bool{},
		}
		for n := range worldTunlets {
			w.step(TunletReady{Info: &attunev1.DescribeResponse{
				Name: fmt.Sprint("t", n), MaxTries: 100, Priority: int32(n / 2),
				Knobs: []*attunev1.Knob{{Name: "k1"}, {Name: "k2"}},
			}})
		}
		for n := range worldProcesses {
			w.start(uint64(n + 1))
		}
		for range 400 {
			w.now += time.Duration(w.rng.IntN(60)) * time.Millisecond
			w.random()
			w.check(seed)
		}
		w.finish(seed)
	}
}

// random makes one thing happen.
func (w *world) random() {
	tunlet := fmt.Sprint("t", w.rng.IntN(worldTunlets))
	switch n := w.rng.IntN(100); {
	case n < 55:
		for scope := range 2 {
			w.step(Sample{Tunlet: tunlet, Scope: fmt.Sprint(scope), Value: w.rng.Float64() * 10, At: w.now})
		}
	case n < 75:
		w.answer()
	case n < 90:
		w.step(Propose{Tunlet: tunlet, Proposal: w.proposal()})
	case n < 95:
		w.step(Withdraw{Tunlet: tunlet, Proposal: fmt.Sprint("p", w.rng.IntN(w.next+1)), Reason: "for the test"})
	case n < 96:
		w.step(TunletGone{Tunlet: tunlet, Reason: "for the test"})
		w.step(TunletReady{Info: w.core.tunlets[tunlet].info})
	case n < 97:
		if ids := slices.Sorted(maps.Keys(w.inForce)); len(ids) > 0 {
			delete(w.inForce, ids[0])
			w.step(Lapsed{Changes: ids[:1], Reason: "for the test"})
		}
	case n < 98:
		if ids := slices.Sorted(maps.Keys(w.inForce)); len(ids) > 0 {
			delete(w.inForce, ids[0])
			w.step(Result{At: w.now, Result: resultOf(ids[0], attunev1.Outcome_OUTCOME_OVERRIDDEN)})
		}
	case n < 99 && w.rng.IntN(20) == 0:
		w.end(uint64(1 + w.rng.IntN(worldProcesses)))
	default:
		w.step(Tick{})
	}
}

// end ends a process, and what was changed in it, and starts another one.
func (w *world) end(process uint64) {
	maps.DeleteFunc(w.inForce, func(_ string, ch *attunev1.Change) bool { return ch.GetProcess() == process })
	w.step(ProcessEnded{Process: process})
	w.start(process)
}

// start starts a process, mostly one that has siblings.
func (w *world) start(process uint64) {
	ev := ProcessStarted{Process: process, Executable: "/bin/app"}
	if w.rng.IntN(4) > 0 {
		ev.Program = "app"
	}
	w.step(ev)
}

// proposal changes some knobs of some processes, or what it must not change.
func (w *world) proposal() *attunev1.Proposal {
	w.next++
	p := &attunev1.Proposal{Id: fmt.Sprint("p", w.next), Scope: fmt.Sprint(w.rng.IntN(2)), PredictedGain: 4 * w.rng.Float64()}
	knob := func() string { return fmt.Sprint("k", 1+w.rng.IntN(2)) }
	if w.rng.IntN(3) == 0 { // one in each, of which one is tried first
		p.ProcessScopes = map[uint64]string{1: "1", 2: "0", 3: "1", 4: "0"}
		for _, process := range w.rng.Perm(worldProcesses) {
			p.Changes = append(p.Changes, changeOf(knob(), uint64(process+1)))
		}
		return p
	}
	for range 1 + w.rng.IntN(3) {
		p.Changes = append(p.Changes, changeOf(knob(), uint64(1+w.rng.IntN(worldProcesses+1))))
	}
	return p
}

func changeOf(knob string, process uint64) *attunev1.Change {
	return &attunev1.Change{
		Knob: knob, Process: process,
		Action: &attunev1.Action{Kind: &attunev1.Action_Setting{Setting: &attunev1.NamedSetting{Name: knob}}},
	}
}

// step gives the core an event and notes what it wants.
func (w *world) step(ev Event) {
	for _, cmd := range w.core.Step(w.now, ev) {
		switch cmd := cmd.(type) {
		case Apply:
			for _, ch := range cmd.Changes {
				if w.inForce[ch.GetId()] != nil {
					w.t.Errorf("change %s is asked for, and in force", ch.GetId())
				}
			}
			w.asked = append(w.asked, cmd)
		case Undo, AskEvaluate:
			w.asked = append(w.asked, cmd)
		}
	}
}

// answer answers the oldest request, mostly well.
func (w *world) answer() {
	if len(w.asked) == 0 {
		return
	}
	cmd := w.asked[0]
	w.asked = w.asked[1:]
	switch cmd := cmd.(type) {
	case Apply:
		refused := w.rng.IntN(10) == 0
		for _, ch := range cmd.Changes {
			outcome := attunev1.Outcome_OUTCOME_REFUSED
			if !refused {
				outcome = attunev1.Outcome_OUTCOME_APPLIED
				w.inForce[ch.GetId()] = ch
			}
			w.step(Result{At: w.now, Result: resultOf(ch.GetId(), outcome)})
		}
		w.step(RequestDone{Request: cmd.Request})
	case Undo:
		for _, id := range cmd.Changes {
			outcome := attunev1.Outcome_OUTCOME_UNDONE
			if w.inForce[id] != nil && !w.stuck[id] && w.rng.IntN(10) == 0 {
				outcome, w.stuck[id] = attunev1.Outcome_OUTCOME_FAILED, true
			} else {
				delete(w.inForce, id)
			}
			w.step(Result{At: w.now, Result: resultOf(id, outcome)})
		}
		w.step(RequestDone{Request: cmd.Request})
	case AskEvaluate:
		w.step(Verdict{Tunlet: cmd.Tunlet, Proposal: cmd.Request.GetProposalId(), Verdict: attunev1.Verdict(w.rng.IntN(4))})
	}
}

// check compares the core with the account.
func (w *world) check(seed uint64) {
	owners := map[knob]string{}
	for id, ch := range w.inForce {
		k := knob{ch.GetKnob(), ch.GetProcess()}
		if other := owners[k]; other != "" {
			w.t.Fatalf("seed %d, %v: changes %s and %s of %v are in force", seed, w.now, other, id, k)
		}
		owners[k] = id
	}
	for i, p := range w.core.line.active {
		for _, q := range w.core.line.active[i+1:] {
			// What is taken back need not wait for anybody.
			tried := p.experiment() && p.state != StateUndoing && q.experiment() && q.state != StateUndoing
			if tried && p.overlaps(q) {
				w.t.Fatalf("seed %d, %v: %s (%v) and %s (%v) are tried at one time", seed, w.now, p.spec.GetId(), p.state, q.spec.GetId(), q.state)
			}
		}
		if p.final() {
			w.t.Fatalf("seed %d, %v: %s is %v and among the active", seed, w.now, p.spec.GetId(), p.state)
		}
	}
}

// finish ends the session, lets everything be answered, and looks whether
// anything is left in force, or in memory that nobody needs.
func (w *world) finish(seed uint64) {
	w.step(Finish{})
	for range 1000 {
		if len(w.asked) == 0 && !w.core.Busy() {
			break
		}
		w.now += 100 * time.Millisecond
		w.answer()
		w.step(Tick{})
	}
	if len(w.inForce) > 0 {
		w.t.Fatalf("seed %d: %d changes are left in force", seed, len(w.inForce))
	}
	for _, p := range w.core.archive.finished {
		if !reflect.DeepEqual(p.trial, trial.Trial{Judgement: p.trial.Judgement}) {
			w.t.Fatalf("seed %d: %s is %v, and its samples are kept", seed, p.spec.GetId(), p.state)
		}
	}
	if w.core.Busy() || len(w.core.line.active) > 0 {
		w.t.Fatalf("seed %d: the core does not come to an end: %d active", seed, len(w.core.line.active))
	}
}
