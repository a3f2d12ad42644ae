// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/analyzer/core"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/catalogue"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

const (
	tunlet  = "stdio"
	without = 35e6  // bytes per second
	with    = 175e6 // with a change that helps
)

// loop is a tunlet with a simulated process and the core, and a controller that does at once
// what it is told.
type loop struct {
	*tunlettest.Harness

	core              *core.Core
	info              *attunev1.DescribeResponse
	process           *tunlettest.Process
	inForce           bool
	objectives, wants int // of the harness, that the core has
	states            []attunev1.ProposalState
}

func newLoop(t *testing.T) *loop {
	t.Helper()
	l := &loop{Harness: tunlettest.New(t, catalogue.New(tunlet)), core: core.New(core.Config{Mode: core.ModeTune}), process: writer()}
	l.info = l.StartSession()
	l.StartProcess(l.process)
	l.step(core.TunletReady{Info: l.info}, core.ProcessStarted{Process: uint64(l.process.Handle), Executable: "/bin/app"})
	return l
}

// restart has the tunlet die, and starts it again.
func (l *loop) restart() {
	l.step(core.TunletGone{Tunlet: tunlet, Reason: "killed"})
	tunlettest.Restart(l.Harness)
	l.step(core.TunletReady{Info: l.info})
}

// writer is a process that the tunlet helps.
func writer() *tunlettest.Process {
	p := tunlettest.Computing()
	p.Hits = func(*attunev1.MeasurePoint) (float64, uint64) { return 0, 0 }
	return p
}

// run lets time pass. With the change the process writes so many bytes a second, in few calls;
// without it as many as before, in many.
func (l *loop) run(d time.Duration, with float64) {
	for end := l.Elapsed() + d; l.Elapsed() < end; {
		rates := l.process.Rates
		rates[sdk.WrittenBytes], rates[sdk.WriteCalls], rates[sdk.CPUSystem] = without, 1e6, 8e8
		if l.inForce {
			rates[sdk.WrittenBytes], rates[sdk.WriteCalls], rates[sdk.CPUSystem] = with, 1e3, 1e6
		}
		l.Round()
		l.step(core.Tick{})
		for ; l.objectives < len(l.Objectives); l.objectives++ {
			o := l.Objectives[l.objectives]
			l.step(core.Sample{Tunlet: tunlet, Scope: o.GetScope(), Value: o.GetValue(), At: l.Elapsed()})
		}
		for ; l.wants < len(l.Proposals); l.wants++ {
			l.step(core.Propose{Tunlet: tunlet, Proposal: l.Proposals[l.wants].Proposal})
		}
	}
}

// step steps the core, and does what it commands.
func (l *loop) step(events ...core.Event) {
	for ; len(events) > 0; events = events[1:] {
		for _, cmd := range l.core.Step(l.Elapsed(), events[0]) {
			switch cmd := cmd.(type) {
			case core.Apply:
				l.inForce = true
				for _, ch := range cmd.Changes {
					events = append(events, l.result(ch.GetId(), attunev1.Outcome_OUTCOME_APPLIED))
				}
				events = append(events, core.RequestDone{Request: cmd.Request})
			case core.Undo:
				l.inForce = false
				for _, id := range cmd.Changes {
					events = append(events, l.result(id, attunev1.Outcome_OUTCOME_UNDONE))
				}
				events = append(events, core.RequestDone{Request: cmd.Request})
			case core.AskEvaluate:
				v, _ := l.Verdict(cmd.Request)
				events = append(events, core.Verdict{Tunlet: tunlet, Proposal: cmd.Request.GetProposalId(), Verdict: v.GetVerdict()})
			case core.Notify:
				l.states = append(l.states, cmd.Request.GetState())
				l.notify(cmd.Request)
			}
		}
	}
}

// notify tells the tunlet what became of a proposal.
func (l *loop) notify(r *attunev1.ProposalChangedRequest) {
	ctx, cancel := l.Context()
	defer cancel()
	if told, err := l.Client.ProposalChanged(ctx, r); err == nil {
		l.React(told.GetReaction())
	}
}

func (l *loop) result(id string, outcome attunev1.Outcome) core.Event {
	return core.Result{At: l.Elapsed(), Result: &attunev1.ActionResult{ChangeId: id, Outcome: outcome}}
}

// TestWhatWasKeptIsUndone: a change of a tunlet in YAML that has become harmful ten minutes after
// it was kept is undone; while it helps it stays.
func TestWhatWasKeptIsUndone(t *testing.T) {
	l := newLoop(t)
	l.run(10*time.Minute, with)
	if !l.inForce || !slices.Equal(l.core.Kept(), []string{"c1", "c2"}) {
		t.Fatalf("states %v, want one that is kept", l.states)
	}
	l.run(3*time.Minute, 10e6)
	if l.inForce || len(l.core.Kept()) > 0 {
		t.Errorf("states %v, want that it is undone", l.states)
	}
}

// TestWhatWasKeptOutlivesItsTunlet: a tunlet that dies and is started again goes on to watch over
// what it had kept: it proposes nothing more, and what has become harmful is undone.
func TestWhatWasKeptOutlivesItsTunlet(t *testing.T) {
	l := newLoop(t)
	l.run(2*time.Minute, with)
	l.restart()
	l.run(10*time.Minute, with)
	if !l.inForce || !slices.Equal(l.core.Kept(), []string{"c1", "c2"}) || len(l.Proposals) != 1 {
		t.Fatalf("states %v, proposals %v, want what was kept", l.states, l.Proposals)
	}
	l.restart()
	l.run(5*time.Minute, 10e6)
	if l.inForce || len(l.core.Kept()) > 0 {
		t.Errorf("states %v, want that it is undone", l.states)
	}
}

// TestWhatMadeRoomIsTriedAgain: a tunlet in YAML whose kept change made room to that of another
// one, of higher priority, that does not stay, measures again: its change is tried and kept.
func TestWhatMadeRoomIsTriedAgain(t *testing.T) {
	l := newLoop(t)
	l.run(2*time.Minute, with)
	rival := proto.CloneOf(l.info)
	rival.Name, rival.Priority = "rival", rival.GetPriority()+1
	l.step(core.TunletReady{Info: rival}, core.Propose{Tunlet: "rival", Proposal: &attunev1.Proposal{
		Id: "r", Scope: "r", Changes: proto.CloneOf(l.Proposals[0].Proposal).GetChanges(),
	}})
	if len(l.core.Kept()) > 0 {
		t.Fatalf("states %v, want that it made room", l.states)
	}
	l.run(time.Minute, with) // nothing is known of what is to judge the other one
	if !l.inForce || len(l.core.Kept()) != 2 {
		t.Errorf("states %v, kept %v, want that it is in force again", l.states, l.core.Kept())
	}
}
